package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/healthscope/healthscope/controllers/commands"
)

// commandTables returns the table of the commands, and a table of the flags of each command, by heading.
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
			if below.Name() == "completion" { // Its subcommands, one for each shell, and their flags are cobra's.
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

// flagsOf returns the table of the flags of a command. It omits --help, which every command has.
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
