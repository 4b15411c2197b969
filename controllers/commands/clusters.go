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
	// clustersRequestTimeout limits one of their requests. A request to a member is also limited to the command's timeout divided by
	// memberTimeoutDivisor, so that a member that does not respond leaves time for the work in the hub.
	clustersRequestTimeout = 10 * time.Second
	memberTimeoutDivisor   = 6
)

// newClusters returns the command clusters. Without a subcommand it does the same as clusters list.
func newClusters() *cobra.Command {
	c := newClustersList("clusters", "List the clusters of the hub, and change them")
	c.AddCommand(newClustersAdd(), newClustersList("list", "List the clusters of the hub, with their states"), newClustersRemove())
	return c
}

// hubFlags are the flags for the connection to the hub, and for the namespace of its clusters.
type hubFlags struct {
	kubeconfig string
	context    string
	namespace  string
	timeout    time.Duration
}

func (h *hubFlags) add(flags *pflag.FlagSet) {
	h.addConnectionFlags(flags)
	flags.DurationVar(&h.timeout, "timeout", clustersTimeout, "how long the command may take")
}

// addConnectionFlags adds all flags except --timeout.
func (h *hubFlags) addConnectionFlags(flags *pflag.FlagSet) {
	flags.StringVar(&h.kubeconfig, "hub-kubeconfig", "", "the kubeconfig file of the hub; the default is $KUBECONFIG, or ~/.kube/config")
	flags.StringVar(&h.context, "hub-context", "", "the context of the hub in that file; the default is the current one")
	flags.StringVar(&h.namespace, "hub-namespace", corev1alpha2.DefaultClustersNamespace, "the namespace, in the hub, of the Secrets of clusters")
}

// client returns a client for the hub, and its configuration.
func (h *hubFlags) client(command string) (client.Client, *rest.Config, error) {
	config, err := loadRESTConfig(h.kubeconfig, h.context, command)
	if err != nil {
		return nil, nil, errors.Wrap(err, "cannot find out how to reach the hub")
	}
	c, err := newClient(config)
	return c, config, errors.Wrap(err, "cannot use the hub")
}

// memberFlags are the flags for the connection to a member.
type memberFlags struct {
	kubeconfig string
	context    string
}

func (m *memberFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&m.context, "context", "", "the context of the member in its kubeconfig file")
	flags.StringVar(&m.kubeconfig, "kubeconfig", "", "the kubeconfig file of the member; the default is $KUBECONFIG, or ~/.kube/config")
}

// config returns the configuration for requests to the member with the caller's rights. timeout is that of the command.
func (m *memberFlags) config(command string, timeout time.Duration) (*rest.Config, error) {
	if m.context == "" {
		return nil, usageError(errors.New("--context is missing: it says which cluster is meant"))
	}
	config, err := loadRESTConfig(m.kubeconfig, m.context, command)
	if err != nil {
		return nil, errors.Wrap(err, "cannot find out how to reach the member")
	}
	config.Timeout = min(config.Timeout, timeout/memberTimeoutDivisor)
	return config, nil
}

// errNoKubeconfig means that there is no kubeconfig file, or that it is empty.
var errNoKubeconfig = errors.New("there is no kubeconfig file, or it is empty")

// loadRESTConfig returns the configuration for a context of the caller's kubeconfig file. The file is trusted: it may run programs and read files. If it
// cannot be used, the exit code of the error is exitUsage.
func loadRESTConfig(path, context, command string) (*rest.Config, error) {
	config, err := newClientConfig(path, context).ClientConfig()
	if clientcmd.IsEmptyConfig(err) { // The text of err recommends an environment variable that the program does not read.
		return nil, usageError(errNoKubeconfig)
	}
	if err != nil {
		return nil, usageError(err)
	}
	config.QPS = -1 // The API server limits requests with priority and fairness.
	config.Timeout = clustersRequestTimeout
	config.UserAgent = fmt.Sprintf("healthscope-%s/%s", command, Version())
	return config, nil
}

// newClientConfig returns the client configuration for a context of a kubeconfig file.
func newClientConfig(path, context string) clientcmd.ClientConfig {
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

// withTimeout calls run with a timeout.
func withTimeout(ctx context.Context, timeout time.Duration, run func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errors.Errorf("not done after %s; increase --timeout", timeout))
	defer cancel()
	err := run(ctx)
	if err != nil && ctx.Err() != nil {
		return errors.Wrap(context.Cause(ctx), err.Error())
	}
	return err
}
