package story

import (
	"fmt"
	"io"
	"strings"

	"github.com/healthscope/healthscope/e2e/controlplane"
)

// Heading prints the heading of a step.
func Heading(out io.Writer, text string) { fmt.Fprintf(out, "\n== %s\n", text) }

func command(out io.Writer, text string) { fmt.Fprintf(out, "\n$ %s\n", text) }

func output(out io.Writer, text string) { fmt.Fprintln(out, strings.TrimRight(text, "\n")) }

// quoted returns arguments quoted for a shell.
func quoted(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a
		if strings.ContainsAny(a, " {}'\"*$&;|<>\\") {
			words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// Invite prints commands that the user can try.
func (s *Story) Invite() {
	Heading(s.out, "It is yours now, until Ctrl-C")
	fmt.Fprintf(s.out, `
  export KUBECONFIG=%s
  alias kubectl=%s

  kubectl get hs -o wide --watch                                   # health, as it changes
  kubectl --context edge01 annotate pod -l app=sink %[3]s=true     # make a pod crash
  kubectl --context edge01 annotate pod -l app=sink %[3]s-         # let it recover
  kubectl --context edge02 scale deployment fw0-firewall --replicas=5
  kubectl --context edge02 delete deployment fw0-packetgen
  bin/healthscope clusters
  kubectl explain hs.spec.apps
  curl %s/scopes
  curl -s %s | grep ^healthscope_
  %s
  tail -f %s %s
`, s.env.Kubeconfigs(), s.env.Hub.Kubectl(), controlplane.CrashAnnotation, s.env.API, s.env.Metrics, s.env.Resources(), s.env.LogPath("controller"), s.env.LogPath("monitor"))
}
