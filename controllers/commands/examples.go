package commands

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are the examples in the help of each command, one a line, as they are typed.
var examples = map[string]string{
	"healthscope controller":          "healthscope controller --config config.yaml\nhealthscope controller --config config.yaml --print-config",
	"healthscope monitor":             "healthscope monitor --config config.yaml",
	"healthscope explain":             "healthscope explain deployment.yaml\nhealthscope explain -f manifests/ -o json",
	"healthscope aai":                 "healthscope aai plan --config config.yaml",
	"healthscope aai plan":            "healthscope aai plan --config config.yaml",
	"healthscope clusters":            "healthscope clusters\nhealthscope clusters -o wide",
	"healthscope clusters list":       "healthscope clusters list --hub-context hub",
	"healthscope clusters add":        "healthscope clusters add provider+edge01 --context edge01 --wait\nhealthscope clusters add provider+edge01 --context edge01 --dry-run",
	"healthscope clusters remove":     "healthscope clusters remove provider+edge01 --context edge01\nhealthscope clusters remove provider+edge01 --keep-member",
	"healthscope context":             "healthscope context list --config config.yaml",
	"healthscope context apply":       "healthscope context apply --config config.yaml -f shop.yaml",
	"healthscope context plan":        "healthscope context plan --config config.yaml 5577006791947779410",
	"healthscope context instantiate": "healthscope context instantiate --config config.yaml 5577006791947779410",
	"healthscope context terminate":   "healthscope context terminate --config config.yaml 5577006791947779410",
	"healthscope context update":      "healthscope context update --config config.yaml 5577006791947779410 8674665223082153551",
	"healthscope context rollback":    "healthscope context rollback --config config.yaml 8674665223082153551 5577006791947779410",
	"healthscope context stop":        "healthscope context stop --config config.yaml 5577006791947779410",
	"healthscope context list":        "healthscope context list --config config.yaml",
	"healthscope context show":        "healthscope context show --config config.yaml 5577006791947779410",
	"healthscope status": "healthscope status -A\nhealthscope status shop -n retail -o wide\nhealthscope status -w --sort-by .status.health\n" +
		"healthscope status retail/shop/v2/autumn --app web\nhealthscope status --server https://healthscope.example.com --token-file token",
	"healthscope support-bundle": "healthscope support-bundle\nhealthscope support-bundle --context hub -o bundle.tar.gz",
	"healthscope version":        "healthscope version\nhealthscope version -o json",
}

// addExamples adds the examples to a command and its subcommands. called is the name of the program in them.
func addExamples(c *cobra.Command, called string) {
	if text := examples[c.CommandPath()]; text != "" {
		c.Example = "  " + strings.ReplaceAll(strings.ReplaceAll(text, "healthscope ", called+" "), "\n", "\n  ")
	}
	for _, child := range c.Commands() {
		addExamples(child, called)
	}
}
