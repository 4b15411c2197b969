package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// inClusterNamespace is where Kubernetes tells a pod its namespace.
const inClusterNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// probeTimeout is the deadline of answering a probe.
const probeTimeout = 500 * time.Millisecond

// defaultNamespace is the namespace of the program when nothing says otherwise.
const defaultNamespace = "healthscope-system"

// options are the flags that the commands with a manager have in common.
type options struct {
	config       string
	printConfig  bool
	kubeconfig   string
	namespace    string
	probeAddress string
	logFormat    string
	verbosity    int
	// spans makes spans of what the program does; nil when traces are not wanted.
	spans trace.TracerProvider
	// startAnew makes a program that runs stop gracefully and start anew.
	startAnew func()
}

// newManagerCommand returns a command that runs a manager. run is given the flags, the configuration and the logger.
func newManagerCommand(name, short string, run func(context.Context, *options, *configv1alpha1.Configuration, logr.Logger) error) *cobra.Command {
	var o options
	start := func(ctx context.Context, out, logs io.Writer) error {
		logger, err := o.setLogger(logs)
		if err != nil {
			return err
		}
		config, err := loadConfig(o.config)
		if err != nil {
			return err
		}
		if o.printConfig {
			return writeConfig(out, config)
		}
		stop, err := o.startTracing(ctx, name, config, logger.WithName("tracing"))
		if err != nil {
			return err
		}
		defer stop()
		return run(ctx, &o, config, logger)
	}
	c := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithCancelCause(c.Context())
			defer cancel(nil)
			o.startAnew = func() { cancel(errReconfigured) }
			err := start(ctx, c.OutOrStdout(), c.ErrOrStderr())
			if err == nil && errors.Is(context.Cause(ctx), errReconfigured) {
				return errReconfigured
			}
			return errors.Wrapf(err, "cannot run the %s", name)
		},
	}
	o.addFlags(c.Flags())
	return c
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.config, "config", "", "the configuration file; without it every setting has its default")
	flags.BoolVar(&o.printConfig, "print-config", false, "print the configuration with all defaults, in the form of the file, and exit. No cluster is needed, and files with secrets are named and not read")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the kubeconfig file of the cluster; the default is $KUBECONFIG, the cluster the program runs in, or ~/.kube/config")
	flags.StringVar(&o.namespace, "namespace", "", "the namespace of the program's Lease; the default is that of its pod, or "+defaultNamespace)
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "host:port of /healthz and /readyz; 0 for none. Ready means that the bundles have been read once")
	flags.StringVar(&o.logFormat, "log-format", "text", "the format of log lines: text or json")
	flags.IntVarP(&o.verbosity, "verbosity", "v", 0, "how much is logged: 0 what happened, 1 decisions, 4 details")
}

// setLogger makes the logger of the command, which writes to out, and hands it to the libraries.
func (o *options) setLogger(out io.Writer) (logr.Logger, error) {
	if o.verbosity < 0 {
		return logr.Logger{}, errors.Errorf("--verbosity is %d; it must not be negative", o.verbosity)
	}
	handlerOptions := &slog.HandlerOptions{Level: slog.Level(-o.verbosity), ReplaceAttr: nameLevel}
	var handler slog.Handler
	switch o.logFormat {
	case "text":
		handler = slog.NewTextHandler(out, handlerOptions)
	case "json":
		handler = slog.NewJSONHandler(out, handlerOptions)
	default:
		return logr.Logger{}, errors.Errorf("--log-format is %q; it must be text or json", o.logFormat)
	}
	logger := logr.FromSlogHandler(handler)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return logger, nil
}

// nameLevel calls every level below INFO by its own name: logr's V(1) would be DEBUG+3 to slog.
func nameLevel(_ []string, a slog.Attr) slog.Attr {
	if level, ok := a.Value.Any().(slog.Level); ok && a.Key == slog.LevelKey && level < slog.LevelInfo {
		a.Value = slog.StringValue("DEBUG")
	}
	return a
}

// restConfig returns how to reach the cluster. There is no limit on the client's side: the API server has its own and fair one.
func (o *options) restConfig(command string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) { // Its text advises to set a variable that is not read.
		err = errors.New("there is no kubeconfig file; give one with --kubeconfig or $KUBECONFIG")
	}
	if err != nil {
		return nil, errors.Wrap(err, "cannot find out how to reach the cluster")
	}
	config.QPS = -1
	config.UserAgent = fmt.Sprintf("healthscope-%s/%s", command, Version())
	return config, nil
}

// leaseNamespace returns the namespace of the program's Lease.
func (o *options) leaseNamespace() string {
	if o.namespace != "" {
		return o.namespace
	}
	if data, err := os.ReadFile(inClusterNamespace); err == nil {
		if ns := strings.TrimSpace(string(data)); ns != "" {
			return ns
		}
	}
	return defaultNamespace
}

// managerOptions returns what the managers of all commands have in common.
// lease is the name of the Lease that the one active replica holds; it is given back at a graceful stop.
func (o *options) managerOptions(lease string) (ctrl.Options, error) {
	scheme, err := newScheme()
	if err != nil {
		return ctrl.Options{}, err
	}
	return ctrl.Options{
		Scheme:                        scheme,
		HealthProbeBindAddress:        o.probeAddress,
		LeaderElection:                true,
		LeaderElectionID:              lease,
		LeaderElectionNamespace:       o.leaseNamespace(),
		LeaderElectionReleaseOnCancel: true,
		// In controller-runtime v0.24.1 the priority queue may never end when it is shut down
		// (kubernetes-sigs/controller-runtime#3538); the Lease would then not be released.
		Controller: config.Controller{UsePriorityQueue: new(false)},
	}, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, corev1alpha2.AddToScheme, k8spluginv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, errors.Wrap(err, "cannot register types")
		}
	}
	return scheme, nil
}

// addProbes adds the answers to /healthz and /readyz.
func addProbes(mgr ctrl.Manager, ready healthz.Checker) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return errors.Wrap(err, "cannot add the health check")
	}
	return errors.Wrap(mgr.AddReadyzCheck("synced", ready), "cannot add the readiness check")
}
