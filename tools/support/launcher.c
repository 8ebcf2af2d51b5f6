/* Starts the program that lies beside it by the dynamic loader and the libraries that lie there too, whatever the machine
   has of its own: FOLDER/NAME runs FOLDER/lib/loader --library-path FOLDER/lib FOLDER/bin/NAME. Linked statically; needs
   neither a shell nor /proc. Made by tools/pack. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static char* joined(const char* folder, const char* name) {
  char* path = malloc(strlen(folder) + strlen(name) + 2);
  if (path == NULL) exit(3);
  strcpy(path, folder);
  strcat(path, "/");
  return strcat(path, name);
}

int main(int count, char** words) {
  char self[PATH_MAX];
  /* The name by which the system was asked to run this file, links followed. */
  const char* asked = (const char*)getauxval(AT_EXECFN);
  if (asked == NULL || realpath(asked, self) == NULL) {
    fprintf(stderr, "fullbore: cannot find the folder of this program\n");
    return 3;
  }
  if (setenv("FULLBORE_LAUNCHER", self, 1) != 0) return 3;
  char* name = strrchr(self, '/');
  *name++ = '\0';
  char* libraries = joined(self, "lib");
  char* binaries = joined(self, "bin");
  char** all = calloc((size_t)count + 7, sizeof(char*));
  if (all == NULL) return 3;
  int i = 0;
  all[i++] = joined(libraries, "loader");
  all[i++] = "--argv0";
  all[i++] = words[0];
  all[i++] = "--library-path";
  all[i++] = libraries;
  all[i++] = joined(binaries, name);
  for (int word = 1; word < count; ++word) all[i++] = words[word];
  execv(all[0], all);
  fprintf(stderr, "fullbore: cannot run %s\n", all[0]);
  return 3;
}
