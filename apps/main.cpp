#include "fullbore/app/app.h"

int main(int argc, char** argv) { return fullbore::app(argc, argv); }
