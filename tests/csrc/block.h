/*
 * block.h - memory of exactly the size asked for, at an odd address and filled with a pattern, so that a sanitizer sees whoever
 * needs more, alignment or zeros.
 */

#ifndef BLOCK_H
#define BLOCK_H

#include <stdlib.h>
#include <string.h>

typedef struct Block {
    char* base;
    char* memory;
    size_t num_bytes;
} Block;

static Block block_of(size_t num_bytes) {
    Block block;
    block.base = (char*)malloc(num_bytes + 1);
    block.memory = block.base + 1;
    block.num_bytes = num_bytes;
    memset(block.base, 0xA5, num_bytes + 1);
    return block;
}

#endif /* BLOCK_H */
