# SPDX-License-Identifier: GPL-2.0-only
# Bash completion of the dm-lc tools.
# shellcheck shell=bash

_lc_options() {
	case $1 in
	format) echo "--backing= --in-place --no-mark --segment-size= --checksum= --label= \
--option= --discard --yes --force= --help --version" ;;
	resume) echo "--option= --iostats --print-table --running-ok --wait= --help --version" ;;
	flush) echo "--buffers --help --version" ;;
	status) echo "--json --format= --output= --watch= --count= --help --version" ;;
	remove) echo "--detach --no-drain --missing-ok --busy-ok --help --version" ;;
	detach) echo "--backing= --force= --help --version" ;;
	dump) echo "--segments --records --entries --json --extract= \
--extract-map= --help --version" ;;
	watch) echo "--hooks= --help --version" ;;
	check) echo "--backing= --repair --this-copy --yes --quiet --help --version" ;;
	esac
}

# The values of an option of a command; fails if it takes none that are known.
_lc_values() {
	case $1:$2 in
	*:--backing | *:-b | dump:--extract | dump:-x | dump:--extract-map | \
		status:--output | status:-o | watch:--hooks | watch:-k) compgen -f -- "$3" ;;
	status:--format | status:-f) compgen -W "json prometheus" -- "$3" ;;
	status:--watch | status:-w) compgen -W "1 5 10 60" -- "$3" ;;
	status:--count | status:-c) compgen -W "1 10 100" -- "$3" ;;
	format:--segment-size | format:-s) compgen -W "64K 128K 256K 512K 1M 2M 4M" -- "$3" ;;
	format:--checksum | format:-c) compgen -W "xxh64 crc32c" -- "$3" ;;
	format:--force | format:-f) compgen -W "ssd-signature dirty-cache hdd-signature paired \
fs-at-end same-disk other-path roles" -- "$3" ;;
	detach:--force | detach:-f) compgen -W "cache-missing lost-blocks other-path" -- "$3" ;;
	resume:--wait) compgen -W "30 90 300 infinity" -- "$3" ;;
	*:--option | *:-o) compgen -S = -W "buffers high_watermark low_watermark writeback_batch \
writeback_depth idle_seal_ms writeback ssd_patience_ms hdd_patience_ms verify_reads lanes stats \
read_cache bypass_kb warm cache_mode" -- "$3" ;;
	*) return 1 ;;
	esac
}

_lc_arguments() {
	case $1 in
	watch) ;;
	flush | status | remove)
		local names=()
		names=(/dev/mapper/*)
		names=("${names[@]##*/}")
		compgen -W "${names[*]/control/}" -- "$2"
		;;
	resume)
		# Volumes that start at boot may be named alone.
		compgen -W "$(sed -n 's/^[[:blank:]]*\([^#[:blank:]]\{1,\}\).*/\1/p' /etc/lctab \
			2> /dev/null)" -- "$2"
		compgen -f -- "${2:-/dev/}"
		;;
	*) compgen -f -- "${2:-/dev/}" ;;
	esac
}

_lc() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[0]##*/}

	COMPREPLY=()
	if [[ $command == lc ]]; then
		if ((COMP_CWORD == 1)); then
			mapfile -t COMPREPLY < <(compgen -W "format resume flush status remove detach dump check watch \
--help --version" -- "$cur")
			return
		fi
		command=${COMP_WORDS[1]}
	fi
	command=${command#lc-}
	# readline takes "=" for a word of its own.
	if [[ $cur == "=" ]]; then
		cur=
	elif [[ $prev == "=" ]]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	mapfile -t COMPREPLY < <(_lc_values "$command" "$prev" "$cur")
	if ((${#COMPREPLY[@]})); then
		[[ $prev == --option || $prev == -o ]] && compopt -o nospace
		return
	fi
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_lc_options "$command")" -- "$cur")
		[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
	else
		mapfile -t COMPREPLY < <(_lc_arguments "$command" "$cur")
	fi
}

complete -o filenames -F _lc lc lc-format lc-resume lc-flush lc-status lc-remove lc-detach lc-dump lc-check lc-watch
