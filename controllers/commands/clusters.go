package commands

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/app"
)

const (
	// clustersTimeout is how long the commands about clusters may take by default.
	clustersTimeout = time.Minute
	// clustersRequestTimeout is the deadline of one of their requests, and memberShare bounds it for those to a member, as a part
	// of the whole: what is to be done in the hub must not wait for a member that says nothing.
	clustersRequestTimeout = 10 * time.Second
	memberShare            = 6
)

// newClusters returns the command clusters. Alone it does what its subcommand list does.
func newClusters() *cobra.Command {
	c := newClustersList("clusters", "List the clusters of the hub, and change them")
	c.AddCommand(newClustersAdd(), newClustersList("list", "List the clusters of the hub, with their states"), newClustersRemove())
	return c
}

// hubFlags say where the hub is, and where in it its clusters are.
type hubFlags struct {
	kubeconfig string
	context    string
	namespace  string
	timeout    time.Duration
}

func (h *hubFlags) add(flags *pflag.FlagSet) {
	h.addPlace(flags)
	flags.DurationVar(&h.timeout, "timeout", clustersTimeout, "how long the command may take")
}

// addPlace adds the flags that say where the hub is.
func (h *hubFlags) addPlace(flags *pflag.FlagSet) {
	flags.StringVar(&h.kubeconfig, "hub-kubeconfig", "", "the kubeconfig file of the hub; the default is $KUBECONFIG, or ~/.kube/config")
	flags.StringVar(&h.context, "hub-context", "", "the context of the hub in that file; the default is the current one")
	flags.StringVar(&h.namespace, "hub-namespace", corev1alpha2.DefaultClustersNamespace, "the namespace, in the hub, of the Secrets of clusters")
}

// client returns a client for the hub, and how it is reached.
func (h *hubFlags) client(command string) (client.Client, *rest.Config, error) {
	config, err := configOf(h.kubeconfig, h.context, command)
	if err != nil {
		return nil, nil, errors.Wrap(err, "cannot find out how to reach the hub")
	}
	c, err := newClient(config)
	return c, config, errors.Wrap(err, "cannot use the hub")
}

// memberFlags say where a member is.
type memberFlags struct {
	kubeconfig string
	context    string
}

func (m *memberFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&m.context, "context", "", "the context of the member in its kubeconfig file")
	flags.StringVar(&m.kubeconfig, "kubeconfig", "", "the kubeconfig file of the member; the default is $KUBECONFIG, or ~/.kube/config")
}

// config returns how the member is reached with the caller's rights, by a command that may take a time in all.
func (m *memberFlags) config(command string, timeout time.Duration) (*rest.Config, error) {
	if m.context == "" {
		return nil, usage(errors.New("--context is missing: it says which cluster is meant"))
	}
	config, err := configOf(m.kubeconfig, m.context, command)
	if err != nil {
		return nil, errors.Wrap(err, "cannot find out how to reach the member")
	}
	config.Timeout = min(config.Timeout, timeout/memberShare)
	return config, nil
}

// errNoKubeconfig means that there is nothing that says how to reach a cluster.
var errNoKubeconfig = errors.New("there is no kubeconfig file, or it is empty")

// configOf returns how a context of a kubeconfig file of the caller's is reached. The file is trusted: it may run programs and read files. One that cannot be used ends the program with exitUsage.
func configOf(path, context, command string) (*rest.Config, error) {
	config, err := clientConfigOf(path, context).ClientConfig()
	if clientcmd.IsEmptyConfig(err) { // Its text advises to set a variable that is not read.
		return nil, usage(errNoKubeconfig)
	}
	if err != nil {
		return nil, usage(err)
	}
	config.QPS = -1 // The API server has a limit of its own, and a fair one.
	config.Timeout = clustersRequestTimeout
	config.UserAgent = fmt.Sprintf("healthscope-%s/%s", command, Version())
	return config, nil
}

// clientConfigOf returns what a context of a kubeconfig file says.
func clientConfigOf(path, context string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
}

// newClient returns a client without a cache.
func newClient(config *rest.Config) (client.Client, error) {
	scheme, err := app.NewScheme()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// within runs something with a deadline.
func within(ctx context.Context, timeout time.Duration, run func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errors.Errorf("not done after %s; increase --timeout", timeout))
	defer cancel()
	err := run(ctx)
	if err != nil && ctx.Err() != nil {
		return errors.Wrap(context.Cause(ctx), err.Error())
	}
	return err
}
