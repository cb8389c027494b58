/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What device mapper shows of a volume: the status line, the IMA line, lists of sectors.
 *
 * Below target.c; reads all rooms and changes none.
 *
 * All may sleep.  Each number is right at some moment during the call, but not all of them at the
 * same moment.
 */
#ifndef LC_STATUS_H
#define LC_STATUS_H

struct lc_volume;

/**
 * lc_status_info() - STATUSTYPE_INFO
 * @vol: the volume, started or not
 * @result: gets the text
 * @maxlen: bytes there; what does not fit is cut off
 */
void lc_status_info(struct lc_volume *vol, char *result, unsigned int maxlen);

/**
 * lc_status_ima() - STATUSTYPE_IMA: what identifies the volume
 * @vol: the volume, started or not
 * @result: gets the text
 * @maxlen: bytes there; what does not fit is cut off
 */
void lc_status_ima(struct lc_volume *vol, char *result, unsigned int maxlen);

/**
 * lc_status_list() - message `list lost|refused [<from>]`
 * @vol: the volume
 * @argc: number of words after `list`, at least one
 * @argv: the words
 * @result: gets ranges of sectors of the volume as first+count, unsorted, and `next <from>` if
 *	there are more
 * @maxlen: bytes there
 *
 * Return: 1, which tells device mapper that there is a result, or -EINVAL; then the kernel log
 * says what was expected.
 */
int lc_status_list(struct lc_volume *vol, unsigned int argc, char **argv, char *result,
		   unsigned int maxlen);

#endif /* LC_STATUS_H */
