package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/healthscope/healthscope/e2e/controlplane"
)

func heading(out io.Writer, text string) { fmt.Fprintf(out, "\n== %s\n", text) }

func command(out io.Writer, text string) { fmt.Fprintf(out, "\n$ %s\n", text) }

func output(out io.Writer, text string) { fmt.Fprintln(out, strings.TrimRight(text, "\n")) }

// quoted puts arguments as a shell would need them.
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

// indented writes each line behind two blanks.
type indented struct{ out io.Writer }

func indent(out io.Writer) io.Writer { return indented{out} }

// Write implements io.Writer for writers of whole lines.
func (i indented) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if _, err := io.WriteString(i.out, "  "+line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// invite tells what there is to play with.
func (s *story) invite() {
	heading(s.out, "It is yours now, until Ctrl-C")
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
`, s.kubeconfigs(), s.cp.Kubectl(), controlplane.CrashAnnotation, s.hs.API, s.hs.Metrics, s.hs.Resources(), s.hs.LogPath("controller"), s.hs.LogPath("monitor"))
}
