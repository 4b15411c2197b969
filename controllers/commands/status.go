package commands

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	// statusInterval is the default interval between queries for documents that cannot be streamed.
	statusInterval = 5 * time.Second
	// minStatusInterval is the minimum of that interval.
	minStatusInterval = time.Second
)

// statusFlags are the flags of the command status.
type statusFlags struct {
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
	colour bool
}

func newStatus() *cobra.Command {
	var f statusFlags
	c := &cobra.Command{
		Use: "status [SUBJECT]", Short: "Print the status of applications", Long: statusLong,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f.colour = hasColor(c)
			return f.run(c.Context(), strings.Join(args, ""), c.Flags(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.add(c.Flags())
	return c
}

func (f *statusFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig file of the hub; the default is $KUBECONFIG, or ~/.kube/config. With --server its token is used")
	flags.StringVar(&f.context, "context", "", "the context of the hub in that file; the default is the current one. With --server its token is used")
	flags.StringVar(&f.controllerNamespace, "controller-namespace", defaultNamespace, "for groups and clusters: the namespace of the controller")
	flags.StringVar(&f.serviceAccount, "service-account", defaultServiceAccount, "for groups and clusters: the ServiceAccount in the namespace of the controller whose token is used if the kubeconfig has none")
	flags.StringVar(&f.server, "server", "", "the URL of the status REST API, to use instead of the API server")
	flags.StringVar(&f.tokenFile, "token-file", "", "with --server: a file with a bearer token of Kubernetes; it is read for each request")
	flags.StringVar(&f.caFile, "ca-file", "", "with --server: a file with the CA certificates for the server's certificate; the default is those of the system")
	flags.DurationVar(&f.timeout, "timeout", statusTimeout, "how long one request may take")
	flags.StringVar(&f.kind, "type", "", "for groups and clusters: rsync (what was applied), cluster (what exists) or all; the default is all if --detail is small or full, and rsync otherwise")
	flags.StringVar(&f.detail, "detail", "small", "for groups and clusters: summary (counts), all (resources), detail (resources with the objects), small (all, with health), full (detail, with health) or rsync")
	flags.StringArrayVar(&f.apps, "app", nil, "for groups and clusters: only this app; may be repeated")
	flags.StringArrayVar(&f.clusters, "cluster", nil, "for groups and clusters: only this cluster, <provider>+<cluster>; may be repeated")
	flags.StringArrayVar(&f.resources, "resource", nil, "for groups and clusters: only resources with this name; may be repeated")
	flags.StringVar(&f.instance, "instance", "", "for groups and clusters: the instance with this id; the default is the one in force")
	flags.BoolVar(&f.instances, "instances", false, "for groups and clusters: list only the ids of all instances")
	flags.BoolVar(&f.health, "health", true, "for groups and clusters: query state, reason and age")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "for HealthScopes: the namespace; the default is that of the context, or with --server all namespaces")
	flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "list the HealthScopes of all namespaces")
	flags.StringVarP(&f.output, "output", "o", formatTable, "the output format: table, json or yaml; for HealthScopes from the API server also wide, name or jsonpath=TEMPLATE. For groups and clusters, and with --server, json and yaml print the document as it is served")
	flags.StringVar(&f.sortBy, "sort-by", "", "sort the list of HealthScopes from the API server by this field, a JSONPath such as .status.health")
	flags.BoolVarP(&f.watch, "watch", "w", false, "after the first output, print what changes")
	flags.DurationVar(&f.interval, "interval", statusInterval, "for groups and clusters, with --watch: the interval between queries. Changes of HealthScopes are printed as they happen")
}

// run prints the status of a subject.
func (f *statusFlags) run(ctx context.Context, subject string, flags *pflag.FlagSet, out, errOut io.Writer) error {
	t, err := parseTarget(subject)
	if err == nil {
		err = f.check(t, flags)
	}
	if err != nil {
		return usageError(err)
	}
	v := &statusView{target: t, format: f.output, colour: f.colour, terminal: isTerminal(out)}
	var source statusSource
	if f.server == "" && !t.isDocument() {
		source, err = f.newScopeSource(v)
	} else {
		source, err = f.newRESTSource(v, flags)
	}
	if err != nil {
		return usageError(err)
	}
	if f.watch {
		interval := minReconnect
		if t.isDocument() {
			interval = f.interval
		}
		p := &statusPrinter{statusView: v, out: out}
		return noAnswer(v.target.cannot("follow", follow(ctx, source, interval, p.print, errOut)))
	}
	text, health, err := source.get(ctx)
	if err == nil {
		if _, writeErr := io.WriteString(out, text); writeErr != nil {
			err = printError{writeErr}
		}
	}
	return statusResult(v.target, health, err)
}

// statusResult returns the error that determines the exit code, by the health that was printed or the error.
func statusResult(t target, health healthscope.Health, err error) error {
	var r responseError
	switch {
	case errors.As(err, new(*exitError)):
		return err
	case errors.As(err, &r) && r.code == http.StatusBadRequest: // The server has rejected the value of a flag.
		return usageError(t.cannot("get", err))
	case err != nil:
		return noAnswer(t.cannot("get", err))
	case health == healthscope.Unhealthy:
		return errNo
	case health == healthscope.HealthUnknown:
		return errUnknown
	}
	return nil
}

// The flags that apply only to groups and clusters, of which the first exclude --instances, and those that apply only to HealthScopes.
var (
	selectingFlags = []string{"type", "detail", "app", "cluster", "resource", "instance"}
	documentFlags  = append(slices.Clone(selectingFlags), "instances", "health", "interval", "controller-namespace", "service-account")
	scopeFlags     = []string{"namespace", "all-namespaces", "sort-by"}
)

// check returns an error if flags are invalid or cannot be combined.
func (f *statusFlags) check(t target, flags *pflag.FlagSet) error {
	if f.timeout <= 0 {
		return errors.Errorf("--timeout is %s; it must be more than nothing", f.timeout)
	}
	if f.interval < minStatusInterval {
		return errors.Errorf("--interval is %s; it must be %s or more", f.interval, minStatusInterval)
	}
	if err := f.checkTarget(t, flags); err != nil {
		return err
	}
	switch {
	case f.server == "" && f.caFile != "":
		return errors.New("--ca-file is given; it is for the server of --server, which is missing")
	case f.server == "" && f.tokenFile != "":
		return errors.New("--token-file is given; it is for the server of --server, which is missing")
	case f.server != "" && f.sortBy != "":
		return errors.New("--sort-by is given; it cannot be together with --server")
	case f.server != "" || t.isDocument():
		return checkFormat(f.output, formatTable, formatJSON, formatYAML)
	}
	return nil
}

// checkTarget returns an error for flags that do not apply to a target.
func (f *statusFlags) checkTarget(t target, flags *pflag.FlagSet) error {
	others, of := documentFlags, "deployment intent groups and clusters"
	if t.isDocument() {
		others, of = scopeFlags, "HealthScopes"
	}
	list := "the list of HealthScopes"
	switch name := firstChanged(flags, others); {
	case name != "":
		return errors.Errorf("--%s is given; it is for %s, and not for %s", name, of, t)
	case f.instances && firstChanged(flags, selectingFlags) != "":
		return errors.Errorf("--%s is given; it cannot be together with --instances, which lists all of them", firstChanged(flags, selectingFlags))
	case t.kind == targetScope && f.allNamespaces:
		return errors.Errorf("--all-namespaces is given; it is for %s, and not for %s", list, t)
	case t.kind == targetScope && f.sortBy != "":
		return errors.Errorf("--sort-by is given; it is for %s, and not for %s", list, t)
	case t.kind == targetScope && len(t.names) > 1 && flags.Changed("namespace"):
		return errors.Errorf("--namespace is %q; it cannot be together with %s, which has a namespace", f.namespace, t)
	}
	return nil
}

// firstChanged returns the first of the named flags that is given, or an empty string.
func firstChanged(flags *pflag.FlagSet, names []string) string {
	if at := slices.IndexFunc(names, flags.Changed); at >= 0 {
		return names[at]
	}
	return ""
}

// query returns the query of a request. It does not check the values that the server checks.
func (f *statusFlags) query(t target, flags *pflag.FlagSet) url.Values {
	q := url.Values{}
	switch {
	case t.kind == targetScopes && f.namespace != "" && !f.allNamespaces:
		q.Set("namespace", f.namespace)
	case !t.isDocument():
	case f.instances:
		q.Set("instance", "")
	default:
		q["app"], q["cluster"], q["resource"] = f.apps, f.clusters, f.resources
		q.Set("output", f.detail)
		if f.health || flags.Changed("health") {
			q.Set("health", strconv.FormatBool(f.health))
		}
		if f.kind != "" {
			q.Set("type", f.kind)
		}
		if flags.Changed("instance") {
			q.Set("instance", f.instance)
		}
	}
	return q
}
