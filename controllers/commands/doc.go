// Package commands owns the command line of the healthscope program: a command reads its flags, calls the packages that
// do the work, and prints the result. The program's main calls it, and the commands controller and monitor run what
// package app sets up. It must never do the work itself, and no other package of the program may import it.
package commands
