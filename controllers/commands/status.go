package commands

import (
	"context"
	"io"
	"net/http"
	"net/url"
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
	target, err := parseTarget(subject)
	if err == nil {
		err = f.check(target, flags)
	}
	if err != nil {
		return usageError(err)
	}
	if f.server == "" && !target.isDocument() {
		return f.runScopes(ctx, target, out, errOut)
	}
	return f.runDocument(ctx, target.inNamespace(f.namespace), flags, out, errOut)
}

// runScopes prints scopes from the API server.
func (f *statusFlags) runScopes(ctx context.Context, t target, out, errOut io.Writer) error {
	objects, err := newObjectPrinter(f.output)
	if err != nil {
		return usageError(err)
	}
	sortBy, err := parseSortKey(f.sortBy)
	if err != nil {
		return usageError(err)
	}
	scopes, err := f.newScopeReader(t)
	if err != nil {
		return err
	}
	v := &scopeView{printer: newStatusPrinter(scopes.target, f.output, f.colour, out), objects: objects, sortBy: sortBy}
	if f.watch {
		return noAnswer(errors.Wrapf(follow(ctx, minReconnect, v.watchAttempt(scopes), errOut), "cannot follow the status of %s", scopes.target))
	}
	list, err := scopes.read(ctx)
	if err != nil {
		return noAnswer(errors.Wrapf(err, "cannot get the status of %s", scopes.target))
	}
	health, err := v.print(list)
	return exitErrorFor(scopes.target, health, err)
}

// runDocument prints the response of a status REST API.
func (f *statusFlags) runDocument(ctx context.Context, t target, flags *pflag.FlagSet, out, errOut io.Writer) error {
	connect := f.controllerClient
	if f.server != "" {
		connect = func() (*statusClient, error) { return newServerClient(f) }
	}
	client, err := connect()
	if err != nil {
		return usageError(err)
	}
	p := newStatusPrinter(t, f.output, f.colour, out)
	u := client.url(t, f.query(t, flags))
	if f.watch {
		interval, attempt := minReconnect, streamAttempt
		if t.isDocument() {
			interval, attempt = f.interval, pollAttempt
		}
		return noAnswer(errors.Wrapf(follow(ctx, interval, attempt(client, u, p), errOut), "cannot follow the status of %s", t))
	}
	response, err := client.get(ctx, u, "")
	var respErr *responseError
	switch {
	case errors.As(err, &respErr) && respErr.status == http.StatusBadRequest: // The server has rejected the value of a flag.
		return usageError(errors.Wrapf(err, "cannot get the status of %s", t))
	case err != nil:
		return noAnswer(errors.Wrapf(err, "cannot get the status of %s", t))
	}
	text, health, err := p.text(response.body, time.Now())
	if err == nil {
		_, err = io.WriteString(out, text)
	}
	return exitErrorFor(t, health, err)
}

// exitErrorFor returns the error that determines the exit code, by the health that was printed or the error of printing it.
func exitErrorFor(t target, health healthscope.Health, err error) error {
	switch {
	case errors.As(err, new(*exitError)):
		return err
	case err != nil:
		return noAnswer(errors.Wrapf(err, "cannot print the status of %s", t))
	case health == healthscope.Unhealthy:
		return errNo
	case health == healthscope.HealthUnknown:
		return errUnknown
	}
	return nil
}

// documentFlags are the flags that apply only to groups and clusters.
var documentFlags = []string{"type", "detail", "app", "cluster", "resource", "instance", "instances", "health", "interval", "controller-namespace", "service-account"}

// check returns an error if flags are invalid or cannot be combined.
func (f *statusFlags) check(t target, flags *pflag.FlagSet) error {
	if f.timeout <= 0 {
		return errors.Errorf("--timeout is %s; it must be more than nothing", f.timeout)
	}
	if f.interval < minStatusInterval {
		return errors.Errorf("--interval is %s; it must be %s or more", f.interval, minStatusInterval)
	}
	if t.isDocument() {
		return f.checkDocument(t, flags)
	}
	for _, name := range documentFlags {
		if flags.Changed(name) {
			return errors.Errorf("--%s is given; it is for deployment intent groups and clusters, and not for %s", name, t)
		}
	}
	switch {
	case t.kind == targetScope && f.allNamespaces:
		return errors.Errorf("--all-namespaces is given; it is for the list of HealthScopes, and not for %s", t)
	case t.kind == targetScope && f.sortBy != "":
		return errors.Errorf("--sort-by is given; it is for the list of HealthScopes, and not for %s", t)
	case t.kind == targetScope && len(t.names) > 1 && flags.Changed("namespace"):
		return errors.Errorf("--namespace is %q; it cannot be together with %s, which has a namespace", f.namespace, t)
	}
	return f.checkServer()
}

// checkDocument returns an error for flags that do not apply to a group or a cluster.
func (f *statusFlags) checkDocument(t target, flags *pflag.FlagSet) error {
	for _, name := range []string{"namespace", "all-namespaces", "sort-by"} {
		if flags.Changed(name) {
			return errors.Errorf("--%s is given; it is for HealthScopes, and not for %s", name, t)
		}
	}
	if f.instances {
		for _, name := range documentFlags[:6] {
			if flags.Changed(name) {
				return errors.Errorf("--%s is given; it cannot be together with --instances, which lists all of them", name)
			}
		}
	}
	if err := f.checkDocumentFormat(); err != nil {
		return err
	}
	return f.checkServer()
}

// checkServer returns an error for flags that do not apply with --server, or without it.
func (f *statusFlags) checkServer() error {
	if f.server == "" {
		for name, value := range map[string]string{"token-file": f.tokenFile, "ca-file": f.caFile} {
			if value != "" {
				return errors.Errorf("--%s is given; it is for the server of --server, which is missing", name)
			}
		}
		return nil
	}
	if f.sortBy != "" {
		return errors.New("--sort-by is given; it cannot be together with --server")
	}
	return f.checkDocumentFormat()
}

// checkDocumentFormat returns an error for output formats that documents do not support.
func (f *statusFlags) checkDocumentFormat() error {
	return checkFormat(f.output, formatTable, formatJSON, formatYAML)
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
		for name, values := range map[string][]string{"app": f.apps, "cluster": f.clusters, "resource": f.resources} {
			if len(values) > 0 {
				q[name] = values
			}
		}
	}
	return q
}
