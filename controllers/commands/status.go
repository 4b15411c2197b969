package commands

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/healthscope/healthscope/healthscope"
)

// statusLong is the help of the command status.
const statusLong = `Print the status of an application, as the status REST API of a hub tells it.

The subject is one of

  PROJECT/COMPOSITE-APP/VERSION/GROUP   a deployment intent group
  PROVIDER+CLUSTER                      the network intents of a cluster
  NAMESPACE/NAME                        a HealthScope
  NAME                                  a HealthScope of the server's default namespace

and without one all HealthScopes are listed.

The exit code is 0 when everything is healthy, 1 when something is not, 2 when the
command line or a file that it names cannot be used, and 3 when the health is not
known or there is no answer. With --watch it is 0 when it was interrupted.`

const (
	// statusServer is where the status REST API is by default.
	statusServer = "http://127.0.0.1:8082"
	// statusTimeout is the default deadline of one request.
	statusTimeout = 30 * time.Second
	// statusInterval is by default how often documents that cannot be streamed are asked for again.
	statusInterval = 5 * time.Second
	// minStatusInterval is how often they may be asked for.
	minStatusInterval = time.Second
)

// statusFlags are the flags of the command status.
type statusFlags struct {
	server, tokenFile, kubeconfig, context, caFile string
	timeout, interval                              time.Duration

	kind, detail, instance    string
	apps, clusters, resources []string
	instances, health         bool
	namespace                 string

	output string
	watch  bool
}

func newStatus() *cobra.Command {
	var f statusFlags
	c := &cobra.Command{
		Use: "status [SUBJECT]", Short: "Print the status of applications, as a hub tells it", Long: statusLong,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), strings.Join(args, ""), c.Flags(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.add(c.Flags())
	return c
}

func (f *statusFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.server, "server", statusServer, "the URL of the status REST API")
	flags.StringVar(&f.tokenFile, "token-file", "", "a file with a bearer token of Kubernetes; it is read for each request")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "a kubeconfig file whose token is used")
	flags.StringVar(&f.context, "context", "", "the context whose token is used, in --kubeconfig or the default kubeconfig file")
	flags.StringVar(&f.caFile, "ca-file", "", "a file with the certificates of the authorities that the server's certificate is checked against; the default is the system's")
	flags.DurationVar(&f.timeout, "timeout", statusTimeout, "how long one request may take")
	flags.StringVar(&f.kind, "type", "", "of groups and clusters: rsync for what was applied, cluster for what is there, or all; the server's default is all with the detail small or full, and else rsync")
	flags.StringVar(&f.detail, "detail", "small", "of groups and clusters: summary for counts, all for resources, detail for these with the objects, small and full for the last two with health, or rsync")
	flags.StringArrayVar(&f.apps, "app", nil, "of groups and clusters: this app only; may be given several times")
	flags.StringArrayVar(&f.clusters, "cluster", nil, "of groups and clusters: this cluster only, <provider>+<cluster>; may be given several times")
	flags.StringArrayVar(&f.resources, "resource", nil, "of groups and clusters: resources of this name only; may be given several times")
	flags.StringVar(&f.instance, "instance", "", "of groups and clusters: the instance with this id; the default is the one in force")
	flags.BoolVar(&f.instances, "instances", false, "of groups and clusters: list the ids of all instances, and nothing else")
	flags.BoolVar(&f.health, "health", true, "of groups and clusters: ask for state, reason and age")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "of the list of HealthScopes: those of this namespace only")
	flags.StringVarP(&f.output, "output", "o", formTable, "the form of the output: table, or json or yaml for the document as it is served")
	flags.BoolVarP(&f.watch, "watch", "w", false, "go on, and print what changes")
	flags.DurationVar(&f.interval, "interval", statusInterval, "with --watch of groups and clusters: how often they are asked for; HealthScopes tell by themselves")
}

// run prints the status of a subject.
func (f *statusFlags) run(ctx context.Context, subject string, flags *pflag.FlagSet, out, errOut io.Writer) error {
	target, err := targetOf(subject)
	if err == nil {
		err = f.check(target, flags)
	}
	if err != nil {
		return usage(err)
	}
	client, err := newStatusClient(f)
	if err != nil {
		return usage(err)
	}
	p := newStatusPrinter(target, f.output, out)
	u := client.url(target, f.query(target, flags))
	if f.watch {
		return noAnswer(errors.Wrapf(f.follow(ctx, client, target, u, p, errOut), "cannot follow the status of %s", target))
	}
	answer, err := client.get(ctx, u, "")
	var refused *refusal
	switch {
	case errors.As(err, &refused) && refused.status == http.StatusBadRequest: // A flag that the server checks.
		return usage(errors.Wrapf(err, "cannot get the status of %s", target))
	case err != nil:
		return noAnswer(errors.Wrapf(err, "cannot get the status of %s", target))
	}
	health, err := p.print(answer.body, time.Now())
	switch {
	case err != nil:
		return noAnswer(errors.Wrapf(err, "cannot print the status of %s", target))
	case health == healthscope.Unhealthy:
		return errNo
	case health == healthscope.HealthUnknown:
		return errUnknown
	}
	return nil
}

// documentFlags are the flags that only documents of groups and clusters take.
var documentFlags = []string{"type", "detail", "app", "cluster", "resource", "instance", "instances", "health", "interval"}

// check refuses flags that cannot be used, or make no sense together.
func (f *statusFlags) check(t target, flags *pflag.FlagSet) error {
	switch f.output {
	case formTable, formJSON, formYAML:
	default:
		return errors.Errorf("--output is %q; it must be table, json or yaml", f.output)
	}
	if f.timeout <= 0 {
		return errors.Errorf("--timeout is %s; it must be more than nothing", f.timeout)
	}
	if f.interval < minStatusInterval {
		return errors.Errorf("--interval is %s; it must be %s or more", f.interval, minStatusInterval)
	}
	if t.kind != ofScopes && flags.Changed("namespace") {
		return errors.Errorf("--namespace is %q; it is for the list of HealthScopes, and not for %s", f.namespace, t)
	}
	if !t.isDocument() {
		for _, name := range documentFlags {
			if flags.Changed(name) {
				return errors.Errorf("--%s is given; it is for deployment intent groups and clusters, and not for %s", name, t)
			}
		}
	}
	if f.instances {
		for _, name := range documentFlags[:6] {
			if flags.Changed(name) {
				return errors.Errorf("--%s is given; it cannot be together with --instances, which lists all of them", name)
			}
		}
	}
	return nil
}

// query returns the query of a request. What the server checks is left to the server.
func (f *statusFlags) query(t target, flags *pflag.FlagSet) url.Values {
	q := url.Values{}
	switch {
	case t.kind == ofScopes && f.namespace != "":
		q.Set("namespace", f.namespace)
	case !t.isDocument():
	case f.instances:
		q.Set("instance", "")
	default:
		q.Set("output", f.detail)
		if f.health || flags.Changed("health") {
			q.Set("health", map[bool]string{true: "true", false: "false"}[f.health])
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
