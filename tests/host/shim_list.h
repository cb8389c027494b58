/* SPDX-License-Identifier: GPL-2.0-only */
/* Lists.  See shim.h. */
#ifndef HOST_SHIM_LIST_H
#define HOST_SHIM_LIST_H

struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD(name) struct list_head name = { &(name), &(name) }

static inline void INIT_LIST_HEAD(struct list_head *head)
{
	head->next = head;
	head->prev = head;
}

static inline void list_add(struct list_head *item, struct list_head *head)
{
	item->next = head->next;
	item->prev = head;
	head->next->prev = item;
	head->next = item;
}

static inline void list_add_tail(struct list_head *item, struct list_head *head)
{
	list_add(item, head->prev);
}

static inline void list_del(struct list_head *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
}

static inline void list_move(struct list_head *item, struct list_head *head)
{
	list_del(item);
	list_add(item, head);
}

static inline void list_move_tail(struct list_head *item, struct list_head *head)
{
	list_move(item, head->prev);
}

static inline void list_replace(struct list_head *old, struct list_head *item)
{
	list_add(item, old);
	list_del(old);
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline void list_splice(struct list_head *list, struct list_head *head)
{
	if (list_empty(list))
		return;
	list->prev->next = head->next;
	head->next->prev = list->prev;
	list->next->prev = head;
	head->next = list->next;
}

static inline void list_splice_init(struct list_head *list, struct list_head *head)
{
	list_splice(list, head);
	INIT_LIST_HEAD(list);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_next_entry(pos, member) list_entry((pos)->member.next, __typeof__(*(pos)), member)
#define list_first_entry(head, type, member) list_entry((head)->next, type, member)
#define list_first_entry_or_null(head, type, member) \
	(list_empty(head) ? NULL : list_first_entry(head, type, member))
#define list_for_each_entry_from(pos, head, member) \
	for (; &(pos)->member != (head); pos = list_next_entry(pos, member))
#define list_for_each_entry(pos, head, member) \
	for (pos = list_first_entry(head, __typeof__(*pos), member); \
	     &(pos)->member != (head); pos = list_next_entry(pos, member))
#define list_for_each_entry_reverse(pos, head, member) \
	for (pos = list_entry((head)->prev, __typeof__(*pos), member); \
	     &(pos)->member != (head); \
	     pos = list_entry((pos)->member.prev, __typeof__(*pos), member))
#define list_for_each_entry_safe(pos, tmp, head, member) \
	for (pos = list_first_entry(head, __typeof__(*pos), member), \
	     tmp = list_next_entry(pos, member); \
	     &(pos)->member != (head); pos = tmp, tmp = list_next_entry(tmp, member))

struct llist_node {
	struct llist_node *next;
};

struct llist_head {
	struct llist_node *first;
};

static inline void init_llist_head(struct llist_head *head)
{
	head->first = NULL;
}

static inline bool llist_empty(const struct llist_head *head)
{
	return !head->first;
}

/* Return: whether it was empty. */
static inline bool llist_add(struct llist_node *item, struct llist_head *head)
{
	item->next = head->first;
	head->first = item;
	return !item->next;
}

static inline struct llist_node *llist_del_all(struct llist_head *head)
{
	struct llist_node *first = head->first;

	head->first = NULL;
	return first;
}

static inline struct llist_node *llist_reverse_order(struct llist_node *item)
{
	struct llist_node *turned = NULL;

	while (item) {
		struct llist_node *next = item->next;

		item->next = turned;
		turned = item;
		item = next;
	}
	return turned;
}

/* An interval tree is a list. */
struct rb_node {
	struct rb_node *next;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
};

#define RB_ROOT_CACHED		((struct rb_root_cached) {})
#define RB_EMPTY_ROOT(root)	(!(root)->rb_node)

#define INTERVAL_TREE_DEFINE(type, member, num, subtree_last, START, LAST, prefix, name) \
static inline type *name##_find(struct rb_node *node, num first, num last) \
{ \
	for (; node; node = node->next) { \
		type *entry = container_of(node, type, member); \
		if (START(entry) <= last && LAST(entry) >= first) \
			return entry; \
	} \
	return NULL; \
} \
static inline type *name##_iter_first(struct rb_root_cached *root, num first, num last) \
{ \
	return name##_find(root->rb_root.rb_node, first, last); \
} \
static inline type *name##_iter_next(type *entry, num first, num last) \
{ \
	return name##_find(entry->member.next, first, last); \
} \
static inline void name##_insert(type *entry, struct rb_root_cached *root) \
{ \
	entry->member.next = root->rb_root.rb_node; \
	root->rb_root.rb_node = &entry->member; \
} \
static inline void name##_remove(type *entry, struct rb_root_cached *root) \
{ \
	struct rb_node **link = &root->rb_root.rb_node; \
	while (*link != &entry->member) \
		link = &(*link)->next; \
	*link = entry->member.next; \
}

#define llist_entry(ptr, type, member) ((ptr) ? container_of(ptr, type, member) : NULL)
#define llist_next(pos, member) llist_entry((pos)->member.next, __typeof__(*(pos)), member)
#define llist_for_each_entry_safe(pos, tmp, node, member) \
	for (pos = llist_entry(node, __typeof__(*pos), member); \
	     pos && (tmp = llist_next(pos, member), true); pos = tmp)

#endif /* HOST_SHIM_LIST_H */
