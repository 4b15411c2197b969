package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/controllers/app"
	"github.com/healthscope/healthscope/controllers/enrol"
)

// clustersAddLong is the help of the command clusters add.
const clustersAddLong = `Make a cluster a member of the hub.

In the member, it creates an account for the hub. The account may read bundles and the
monitor's Lease, and renew its own token. These flags give it more rights:

  --workloads          read workloads and their pods
  --oam                the same, and read workloads of OAM and Applications of KubeVela
  --probe-namespaces   send HTTP probes to Services in these namespaces
  --deploy             apply AppContexts

In the hub, it creates a Secret with a token of that account. The controller finds the
member by this Secret, and renews the token.

If you run the command again, it repairs what has changed, and removes the rights that
the flags no longer give. So repeat all the flags of the first time.

The command uses the rights of the caller in both clusters.`

// clustersAdd are the flags of the command clusters add.
type clustersAdd struct {
	// Enrolment is what the flags say of the member.
	enrol.Enrolment

	hub    hubFlags
	member memberFlags
	server string
	dryRun bool
	wait   bool
}

func newClustersAdd() *cobra.Command {
	var o clustersAdd
	c := &cobra.Command{
		Use: "add NAME --context CONTEXT", Short: "Make a cluster a member of the hub", Long: clustersAddLong, Args: exactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o.Name, o.SecretNamespace = args[0], o.hub.namespace
			if !c.Flags().Changed("token-lifetime") {
				o.TokenLifetime = 0
			}
			err := withTimeout(c.Context(), o.hub.timeout, func(ctx context.Context) error { return o.run(ctx, c.OutOrStdout(), c.ErrOrStderr()) })
			return errors.Wrapf(err, "cannot add cluster %q", o.Name)
		},
	}
	o.member.add(c.Flags())
	o.hub.add(c.Flags())
	c.Flags().StringSliceVar(&o.Namespaces, "namespaces", nil, "the namespaces of the member that the hub may read; the default is all")
	c.Flags().BoolVar(&o.Workloads, "workloads", false, "let the hub read workloads and their pods too, for scopes with a workloadSelector and references to workloads")
	c.Flags().BoolVar(&o.OAM, "oam", false, "let the hub read what --workloads names, and workloads of OAM, Applications of KubeVela and Services, for scopes that refer to these")
	c.Flags().StringSliceVar(&o.ProbeNamespaces, "probe-namespaces", nil, "the namespaces of the member in which the hub may probe Services; the default is none")
	c.Flags().StringSliceVar(&o.DeployNamespaces, "deploy", nil, "let the hub apply AppContexts in these namespaces of the member, as in --deploy=shop; without a value, in all that it may read")
	c.Flags().Lookup("deploy").NoOptDefVal = enrol.AllNamespaces
	c.Flags().StringVar(&o.MonitorNamespace, "monitor-namespace", enrol.MemberNamespace, "the namespace of the monitor's Lease in the member; the same as fleet.monitorNamespace in the controller's configuration")
	c.Flags().DurationVar(&o.TokenLifetime, "token-lifetime", enrol.DefaultTokenLifetime, "how long the hub's token is valid, and each token that replaces it")
	c.Flags().StringVar(&o.server, "server", "", "the URL of the member's API server as the hub reaches it; the default is the one in the kubeconfig file")
	c.Flags().BoolVar(&o.wait, "wait", false, "wait until the cluster is Connected, at most for --timeout. A cluster that is a member already may still be listed as Connected from before")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "print what would be created, without the token, and change nothing")
	return c
}

func (o *clustersAdd) run(ctx context.Context, out, errOut io.Writer) error {
	member, err := o.member.config("clusters-add", o.hub.timeout)
	if err != nil {
		return err
	}
	if err := o.setServer(member); err != nil {
		return usageError(errors.Wrapf(err, "cannot use context %q", o.member.context))
	}
	if err := o.Validate(); err != nil {
		return usageError(err)
	}
	if u, err := url.Parse(o.Server); err == nil && isLoopback(u.Hostname()) {
		fmt.Fprintf(errOut, "warning: %s is an address of this machine; if the controller runs elsewhere, set --server to the URL by which it reaches the member\n", o.Server)
	}
	if o.dryRun {
		return printObjects(o.Enrolment, out)
	}
	hub, hubConfig, err := o.hub.client("clusters-add")
	if err != nil {
		return err
	}
	if hubConfig.Host == member.Host {
		return usageError(errors.Errorf("context %q is of the hub itself, which is its own member already", o.member.context))
	}
	c, err := newClient(member)
	if err != nil {
		return errors.Wrap(err, "cannot use the member")
	}
	err = enrol.Add(ctx, enrol.Clusters{Hub: hub, Member: c, MemberConfig: member, Report: printChanges(out)}, o.Enrolment, time.Now())
	if err != nil || !o.wait {
		return err
	}
	return waitConnected(ctx, hub, o.SecretNamespace, o.Name, out, errOut)
}

// setServer sets how the hub reaches the member that config connects to, without the caller's credentials, proxies and file paths.
func (o *clustersAdd) setServer(config *rest.Config) error {
	if config.Insecure {
		return errors.New("insecure-skip-tls-verify is set: the hub talks to servers only that it can verify; put the authority's certificate into certificate-authority-data")
	}
	if o.server == "" && config.Proxy != nil { // client-go sets Proxy for proxy-url only, and not for environment variables.
		return errors.New("proxy-url is set, and the hub goes through no proxy: say with --server how the hub reaches the member")
	}
	authority := config.CAData
	if len(authority) == 0 && config.CAFile != "" {
		var err error
		if authority, err = os.ReadFile(config.CAFile); err != nil {
			return errors.Wrap(err, "cannot read the authority's certificate")
		}
	}
	o.Server, o.TLSServerName, o.Authority = cmp.Or(o.server, config.Host), config.ServerName, authority
	return nil
}

// printChanges returns a function that prints a change as a line.
func printChanges(out io.Writer) func(enrol.Change) {
	return func(c enrol.Change) { fmt.Fprintln(out, c) }
}

// printObjects prints the objects that an enrolment would create, as YAML, without the token.
func printObjects(e enrol.Enrolment, out io.Writer) error {
	scheme, err := app.NewScheme()
	if err != nil {
		return err
	}
	secret, err := e.Preview()
	if err != nil {
		return err
	}
	printOne := func(where string, o client.Object) error {
		gvk, err := apiutil.GVKForObject(o, scheme)
		if err != nil {
			return err
		}
		o.GetObjectKind().SetGroupVersionKind(gvk)
		data, err := yaml.Marshal(o)
		if err != nil {
			return errors.Wrap(err, "cannot print what would be created")
		}
		_, err = fmt.Fprintf(out, "--- # %s\n%s", where, trimEmptyFields(string(data)))
		return err
	}
	for _, o := range e.MemberObjects() {
		if err := printOne("member", o); err != nil {
			return err
		}
	}
	return printOne("hub", secret)
}

// trimEmptyFields removes the lines of fields that are marshaled although they are not set.
func trimEmptyFields(text string) string {
	var trimmed strings.Builder
	for line := range strings.Lines(text) {
		switch strings.TrimSpace(line) {
		case "creationTimestamp: null", "spec: {}", "status: {}", "rules: null":
		default:
			trimmed.WriteString(line)
		}
	}
	return trimmed.String()
}
