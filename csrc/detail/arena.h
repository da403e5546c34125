/*
 * arena.h - lays arrays one after the other in memory that the caller owns.
 *
 * Private: included by the headers of csrc/. The memory may have any alignment and any contents. What does not fit is NULL, but is
 * counted; so one function that takes a thing's arrays tells its size, too, from an arena without memory:
 *
 *     EvoArena arena = evo__arena(memory, memory_bytes);        or evo__arena(NULL, 0), which only counts
 *     float* weights = (float*)evo__take(&arena, num_weights, sizeof(float));
 *     if (arena.num_bytes > memory_bytes) ...                   come back with arena.num_bytes
 */

#ifndef EVO_ARENA_H
#define EVO_ARENA_H

#include <stddef.h>
#include <stdint.h>

#define EVO__ALIGNMENT 64u /* bytes, of every array: a cache line, a vector */

typedef struct EvoArena {
    char* first;      /* where the first array begins; NULL if there is no memory */
    size_t capacity;  /* bytes of the memory */
    size_t num_bytes; /* that what was taken needs, with room to align it; SIZE_MAX if it is more than half of that */
} EvoArena;

static inline EvoArena evo__arena(void* memory, size_t memory_bytes) {
    EvoArena arena = {NULL, 0, EVO__ALIGNMENT};
    if (memory != NULL) {
        arena.first = (char*)memory + ((0u - (uintptr_t)memory) & (EVO__ALIGNMENT - 1u));
        arena.capacity = memory_bytes;
    }
    return arena;
}

/* An array, or NULL if it does not fit. */
static inline void* evo__take(EvoArena* arena, uint64_t count, size_t item_bytes) {
    const size_t begin = arena->num_bytes - EVO__ALIGNMENT;
    const uint64_t num_bytes = count > SIZE_MAX / 2 / item_bytes ? SIZE_MAX : count * item_bytes;
    if (num_bytes > SIZE_MAX / 2 - arena->num_bytes || arena->num_bytes > SIZE_MAX / 2) {
        arena->num_bytes = SIZE_MAX;
        return NULL;
    }
    arena->num_bytes += ((size_t)num_bytes + EVO__ALIGNMENT - 1u) & ~(size_t)(EVO__ALIGNMENT - 1u);
    return arena->num_bytes <= arena->capacity ? arena->first + begin : NULL;
}

#endif /* EVO_ARENA_H */
