/* kernel_file: numbers from the text files in which the kernel reports its state: /proc, /sys and the files
 * of control groups. */
#ifndef KILN_CORE_KERNEL_FILE_H
#define KILN_CORE_KERNEL_FILE_H

/* The value of a key in a file of lines "KEY VALUE", in the file's unit, or with the key "" its first number;
 * 0 if there is none. */
unsigned long long kernel_file_read(const char *path, const char *key);

#endif
