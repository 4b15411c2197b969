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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/app"
	"github.com/healthscope/healthscope/controllers/enrol"
	"github.com/healthscope/healthscope/controllers/fleet"
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

// emptyFields are the lines of fields that are marshaled although they are not set.
var emptyFields = strings.NewReplacer("spec: {}\n", "", "status: {}\n", "", "rules: null\n", "")

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
	where := "member"
	for _, o := range append(e.MemberObjects(), secret) {
		if o == client.Object(secret) {
			where = "hub"
		}
		var text strings.Builder
		if err := printers.NewTypeSetter(scheme).ToPrinter(&printers.YAMLPrinter{}).PrintObj(o, &text); err != nil {
			return errors.Wrap(err, "cannot print what would be created")
		}
		if _, err := fmt.Fprintf(out, "--- # %s\n%s", where, emptyFields.Replace(text.String())); err != nil {
			return err
		}
	}
	return nil
}

// waitInterval is the interval between checks whether a cluster is Connected.
const waitInterval = time.Second

// waitConnected waits until a cluster is Connected, or until ctx ends, and shows on errOut what it waits for. It ignores the state of a
// cluster with another Secret: the cluster may have been removed and added again.
func waitConnected(ctx context.Context, hub client.Reader, namespace, name string, out, errOut io.Writer) error {
	var secret corev1.Secret
	if err := hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: enrol.SecretName(name)}, &secret); err != nil {
		return errors.Wrapf(err, "it has been added, and cannot be waited for: cannot read Secret %q", enrol.SecretName(name))
	}
	p := newProgress(errOut)
	defer p.clear()
	state := "nothing is known of it"
	err := wait.PollUntilContextCancel(ctx, waitInterval, true, func(ctx context.Context) (bool, error) {
		connected, current := connectionState(ctx, hub, &secret, name)
		if connected || ctx.Err() == nil { // A failure because ctx has ended says nothing about the cluster.
			state = current
		}
		p.showf("waiting until cluster %q is %s: %s", name, fleet.Connected, state)
		return connected, nil
	})
	if err != nil {
		return errors.Errorf("it has been added and is not %s: %s", fleet.Connected, printable(state))
	}
	p.clear()
	_, err = fmt.Fprintf(out, "hub: cluster %s %s\n", name, fleet.Connected)
	return err
}

// connectionState reports whether a cluster is Connected with a Secret, and describes its state.
func connectionState(ctx context.Context, hub client.Reader, secret *corev1.Secret, name string) (connected bool, text string) {
	r, err := enrol.Read(ctx, hub, secret.Namespace, time.Now())
	if err != nil {
		return false, err.Error()
	}
	if !r.Controller.Running {
		return false, "the controller does not run: " + r.Controller.Message
	}
	for _, c := range r.Clusters {
		if c.Name == name && (c.SecretUID == "" || c.SecretUID == secret.UID) {
			text = string(c.State)
			if c.Message != "" {
				text += ": " + c.Message
			}
			return c.State == fleet.Connected, text
		}
	}
	for _, s := range r.RejectedSecrets {
		if s.Name == secret.Name {
			return false, string(fleet.Refused) + ": " + s.Message
		}
	}
	return false, "the controller has not read its Secret yet"
}
