package commands

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/healthscope/healthscope/healthscope"
)

// statusLong is the help of the command status.
const statusLong = `Print the status of an application.

The subject is one of:

  PROJECT/COMPOSITE-APP/VERSION/GROUP   a deployment intent group
  PROVIDER+CLUSTER                      the network intents of a cluster
  NAMESPACE/NAME                        a HealthScope
  NAME                                  a HealthScope of the namespace

Without a subject, the HealthScopes of the namespace are listed.

HealthScopes are read from the API server with the rights of the kubeconfig. Groups
and clusters are read from the controller through a port-forward, with the token of
the kubeconfig or, if it has none, one of --service-account. With --server, everything
is read from the status REST API at that URL.

The exit code is 0 when everything is healthy, 1 when something is not, 2 when the
command line or a file that it names is invalid, and 3 when the health is not known
or there is no answer. With --watch it is 0 when the command is interrupted.`

const (
	// statusTimeout is the default deadline of one request.
	statusTimeout = 30 * time.Second
	// statusInterval is the default interval between queries for documents that cannot be streamed, and minStatusInterval its minimum.
	statusInterval, minStatusInterval = 5 * time.Second, time.Second
	// minReconnect and maxReconnect are the bounds of the backoff after failures.
	minReconnect, maxReconnect = time.Second, 30 * time.Second
)

// statusCommand is the command status: its flags, its target and its output.
type statusCommand struct {
	server, tokenFile, kubeconfig, context, caFile string
	timeout, interval                              time.Duration

	kind, detail, instance    string
	apps, clusters, resources []string
	instances, health         bool

	namespace, sortBy                   string
	allNamespaces                       bool
	controllerNamespace, serviceAccount string

	output string
	watch  bool

	flags       *pflag.FlagSet
	target      target
	out, errOut io.Writer
	// terminal is true if the output is a terminal, colour if it may have colors, and printed after the first output.
	terminal, colour, printed bool
}

// statusSource is a server that has the status of a target.
type statusSource interface {
	// get returns the status in the output format, and the health. A document without health counts as healthy.
	get(ctx context.Context) (text string, health healthscope.Health, err error)
	// follow shows the status and its changes, until the server ends the answer or the source fails. It reports whether there was an answer.
	follow(ctx context.Context) (answered bool, err error)
}

func newStatus() *cobra.Command {
	var s statusCommand
	c := &cobra.Command{
		Use: "status [SUBJECT]", Short: "Print the status of applications", Long: statusLong,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s.flags, s.out, s.errOut = c.Flags(), c.OutOrStdout(), c.ErrOrStderr()
			s.terminal, s.colour = isTerminal(s.out), hasColor(c)
			return s.run(c.Context(), strings.Join(args, ""))
		},
	}
	s.add(c.Flags())
	return c
}

func (s *statusCommand) add(flags *pflag.FlagSet) {
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "the kubeconfig file of the hub; the default is $KUBECONFIG, or ~/.kube/config. With --server its token is used")
	flags.StringVar(&s.context, "context", "", "the context of the hub in that file; the default is the current one. With --server its token is used")
	flags.StringVar(&s.controllerNamespace, "controller-namespace", defaultNamespace, "for groups and clusters: the namespace of the controller")
	flags.StringVar(&s.serviceAccount, "service-account", defaultServiceAccount, "for groups and clusters: the ServiceAccount in the namespace of the controller whose token is used if the kubeconfig has none")
	flags.StringVar(&s.server, "server", "", "the URL of the status REST API, to use instead of the API server")
	flags.StringVar(&s.tokenFile, "token-file", "", "with --server: a file with a bearer token of Kubernetes; it is read for each request")
	flags.StringVar(&s.caFile, "ca-file", "", "with --server: a file with the CA certificates for the server's certificate; the default is those of the system")
	flags.DurationVar(&s.timeout, "timeout", statusTimeout, "how long one request may take")
	flags.StringVar(&s.kind, "type", "", "for groups and clusters: rsync (what was applied), cluster (what exists) or all; the default is all if --detail is small or full, and rsync otherwise")
	flags.StringVar(&s.detail, "detail", "small", "for groups and clusters: summary (counts), all (resources), detail (resources with the objects), small (all, with health), full (detail, with health) or rsync")
	flags.StringArrayVar(&s.apps, "app", nil, "for groups and clusters: only this app; may be repeated")
	flags.StringArrayVar(&s.clusters, "cluster", nil, "for groups and clusters: only this cluster, <provider>+<cluster>; may be repeated")
	flags.StringArrayVar(&s.resources, "resource", nil, "for groups and clusters: only resources with this name; may be repeated")
	flags.StringVar(&s.instance, "instance", "", "for groups and clusters: the instance with this id; the default is the one in force")
	flags.BoolVar(&s.instances, "instances", false, "for groups and clusters: list only the ids of all instances")
	flags.BoolVar(&s.health, "health", true, "for groups and clusters: query state, reason and age")
	flags.StringVarP(&s.namespace, "namespace", "n", "", "for HealthScopes: the namespace; the default is that of the context, or with --server all namespaces")
	flags.BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "list the HealthScopes of all namespaces")
	flags.StringVarP(&s.output, "output", "o", formatTable, "the output format: table, json or yaml; for HealthScopes from the API server also wide, name or jsonpath=TEMPLATE. For groups and clusters, and with --server, json and yaml print the document as it is served")
	flags.StringVar(&s.sortBy, "sort-by", "", "sort the list of HealthScopes from the API server by this field, a JSONPath such as .status.health")
	flags.BoolVarP(&s.watch, "watch", "w", false, "after the first output, print what changes")
	flags.DurationVar(&s.interval, "interval", statusInterval, "for groups and clusters, with --watch: the interval between queries. Changes of HealthScopes are printed as they happen")
}

// run prints the status of a subject.
func (s *statusCommand) run(ctx context.Context, subject string) error {
	source, err := s.source(subject)
	if err != nil {
		return usageError(err)
	}
	if s.watch {
		return noAnswer(s.cannot("follow", s.follow(ctx, source)))
	}
	text, health, err := source.get(ctx)
	if err == nil {
		err = s.show(text)
	}
	var r responseError
	switch {
	case errors.As(err, new(*exitError)):
		return err
	case errors.As(err, &r) && r.code == http.StatusBadRequest: // The server has rejected the value of a flag.
		return usageError(s.cannot("get", err))
	case err != nil:
		return noAnswer(s.cannot("get", err))
	case health == healthscope.Unhealthy:
		return errNo
	case health == healthscope.HealthUnknown:
		return errUnknown
	}
	return nil
}

// source checks the subject and the flags, and returns the source of the status.
func (s *statusCommand) source(subject string) (statusSource, error) {
	var err error
	if s.target, err = parseTarget(subject); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.server == "" && !s.target.isDocument() {
		return s.newScopeSource()
	}
	return s.newRESTSource()
}

// cannot returns an error with what cannot be done with the status of the target. A printError cannot be printed, whatever the verb.
func (s *statusCommand) cannot(verb string, err error) error {
	if errors.As(err, new(printError)) {
		verb = "print"
	}
	return errors.Wrapf(err, "cannot %s the status of %s", verb, s.target)
}

// printError means that an answer cannot be printed.
type printError struct{ error }

// Unwrap returns the error.
func (e printError) Unwrap() error { return e.error }

// show prints a text. With --watch, a table stands apart from the previous output, or replaces it on a terminal.
func (s *statusCommand) show(text string) error {
	switch {
	case !s.watch || s.output != formatTable:
	case s.terminal:
		text = "\x1b[H\x1b[2J" + text
	case s.printed:
		text = "\n" + text
	}
	s.printed = true
	if _, err := io.WriteString(s.out, text); err != nil {
		return printError{err}
	}
	return nil
}

// follow shows a status whenever it changes, until ctx ends. It follows the source again after an interval and, while the source fails, with
// exponential backoff. It returns the error of the source if a retry cannot succeed.
func (s *statusCommand) follow(ctx context.Context, source statusSource) error {
	for pause := minReconnect; ; {
		answered, err := source.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // The command was interrupted.
		case isFinal(err):
			return err
		case answered:
			pause = minReconnect
		}
		wait := minReconnect
		if s.target.isDocument() {
			wait = s.interval
		}
		if err != nil {
			fmt.Fprintf(s.errOut, "warning: %v; trying again in %s\n", err, pause)
			wait, pause = pause, min(2*pause, maxReconnect)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// isFinal reports whether a retry cannot succeed. Other rejections by the API server may come from a proxy that has lost it for a moment.
func isFinal(err error) bool {
	var r responseError
	if errors.As(err, &r) {
		return r.code < http.StatusInternalServerError && r.code != http.StatusTooManyRequests && r.code != http.StatusRequestTimeout
	}
	return errors.As(err, new(printError)) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// The flags that apply only to groups and clusters, of which the first exclude --instances, and those that apply only to HealthScopes.
var (
	selectingFlags = []string{"type", "detail", "app", "cluster", "resource", "instance"}
	documentFlags  = append(slices.Clone(selectingFlags), "instances", "health", "interval", "controller-namespace", "service-account")
	scopeFlags     = []string{"namespace", "all-namespaces", "sort-by"}
)

// check returns an error if flags are invalid or cannot be combined.
func (s *statusCommand) check() error {
	if s.timeout <= 0 {
		return errors.Errorf("--timeout is %s; it must be more than nothing", s.timeout)
	}
	if s.interval < minStatusInterval {
		return errors.Errorf("--interval is %s; it must be %s or more", s.interval, minStatusInterval)
	}
	if err := s.checkTarget(); err != nil {
		return err
	}
	switch {
	case s.server == "" && s.caFile != "":
		return errors.New("--ca-file is given; it is for the server of --server, which is missing")
	case s.server == "" && s.tokenFile != "":
		return errors.New("--token-file is given; it is for the server of --server, which is missing")
	case s.server != "" && s.sortBy != "":
		return errors.New("--sort-by is given; it cannot be together with --server")
	case s.server != "" || s.target.isDocument():
		return checkFormat(s.output, formatTable, formatJSON, formatYAML)
	}
	return nil
}

// checkTarget returns an error for flags that do not apply to the target.
func (s *statusCommand) checkTarget() error {
	t := s.target
	others, of := documentFlags, "deployment intent groups and clusters"
	if t.isDocument() {
		others, of = scopeFlags, "HealthScopes"
	}
	const list = "the list of HealthScopes"
	other, selecting := s.firstChanged(others), s.firstChanged(selectingFlags)
	switch {
	case other != "":
		return errors.Errorf("--%s is given; it is for %s, and not for %s", other, of, t)
	case s.instances && selecting != "":
		return errors.Errorf("--%s is given; it cannot be together with --instances, which lists all of them", selecting)
	case t.kind == targetScope && s.allNamespaces:
		return errors.Errorf("--all-namespaces is given; it is for %s, and not for %s", list, t)
	case t.kind == targetScope && s.sortBy != "":
		return errors.Errorf("--sort-by is given; it is for %s, and not for %s", list, t)
	case t.kind == targetScope && len(t.names) > 1 && s.flags.Changed("namespace"):
		return errors.Errorf("--namespace is %q; it cannot be together with %s, which has a namespace", s.namespace, t)
	}
	return nil
}

// firstChanged returns the first of the named flags that is given, or an empty string.
func (s *statusCommand) firstChanged(names []string) string {
	if at := slices.IndexFunc(names, s.flags.Changed); at >= 0 {
		return names[at]
	}
	return ""
}
