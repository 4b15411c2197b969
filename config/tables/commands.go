package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/healthscope/healthscope/controllers/commands"
)

// commandTables are the commands, below the heading of the page, and the flags of each command, below its own.
func commandTables() map[string]table {
	list := table{{"command", "what it does"}}
	tables := map[string]table{}
	root := commands.NewCommand()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			list = append(list, []string{code(below.CommandPath()), below.Short})
			if below.Name() == "completion" { // The shells below it, and their flags, are cobra's own.
				continue
			}
			if flags := flagsOf(below); len(flags) > 1 {
				tables[below.CommandPath()] = flags
			}
			walk(below)
		}
	}
	walk(root)
	tables["Commands"] = list
	return tables
}

// flagsOf are the flags of a command. Every command has --help.
func flagsOf(c *cobra.Command) table {
	flags := table{{"flag", "type", "default", "meaning"}}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		names, value := []string{"--" + f.Name}, "none"
		if f.Shorthand != "" {
			names = append(names, "-"+f.Shorthand)
		}
		if f.DefValue != "" {
			value = code(f.DefValue)
		}
		flags = append(flags, []string{code(names...), f.Value.Type(), value, f.Usage})
	})
	return flags
}
