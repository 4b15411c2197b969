// Package app holds the commands of the healthscope program. A command turns
// flags and the configuration file into a manager and adds to it what the
// command is for; the work is done in the other packages below controllers.
package app
