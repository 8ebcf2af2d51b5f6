// bin/fullbore_tiny: the command with the workloads and the model of the tests' own.
#include "fullbore/app/app.h"

int main(int argc, char** argv) { return fullbore::app(argc, argv); }
