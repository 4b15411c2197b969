package commands

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/app"
)

// inClusterNamespace is the path of the file in which a pod finds its namespace.
const inClusterNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// defaultNamespace is the default namespace of the program.
const defaultNamespace = "healthscope-system"

// managerFlags are the flags that the commands with a manager have in common.
type managerFlags struct {
	config       string
	printConfig  bool
	kubeconfig   string
	namespace    string
	probeAddress string
	logFormat    string
	verbosity    int
}

// runFunc runs a program until ctx ends.
type runFunc func(ctx context.Context, o app.Options, config *configv1alpha1.Configuration, logger logr.Logger) error

func newController() *cobra.Command {
	return newManagerCommand("controller", "Run the controller of a hub: scopes, the status REST API, metrics and the inventory", app.RunController)
}

func newMonitor() *cobra.Command {
	return newManagerCommand("monitor", "Run the monitor of a workload cluster: it fills the ResourceBundleStates", app.RunMonitor)
}

// newManagerCommand returns a command that runs a program with a manager.
func newManagerCommand(name, short string, run runFunc) *cobra.Command {
	var f managerFlags
	c := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			logger, err := f.setLogger(c.ErrOrStderr())
			if err == nil {
				err = f.run(c.Context(), name, run, c.OutOrStdout(), logger)
			}
			if err != nil && f.logFormat == "json" {
				logger.Error(err, "Cannot run the "+name)
				return withCode(exitCode(err), errReported) // The output contains only JSON.
			}
			return errors.Wrapf(err, "cannot run the %s", name)
		},
	}
	f.addFlags(c.Flags())
	return c
}

// run runs a program, or prints its configuration.
func (f *managerFlags) run(ctx context.Context, name string, run runFunc, out io.Writer, logger logr.Logger) error {
	config, err := app.LoadConfig(f.config)
	if err != nil {
		return usageError(err)
	}
	if f.printConfig {
		// Files with secrets are named and not read.
		return errors.Wrap(encode(out, formatYAML, config), "cannot write the configuration")
	}
	restConfig, err := f.restConfig(name)
	if err != nil {
		return err
	}
	return run(ctx, app.Options{
		REST: restConfig, ConfigFile: f.config, LeaseNamespace: f.leaseNamespace(), ProbeAddress: f.probeAddress, Version: Version(), Commit: thisBuild().Commit,
	}, config, logger)
}

func (f *managerFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.config, "config", "", "the configuration file; without it every setting has its default")
	flags.BoolVar(&f.printConfig, "print-config", false, "print the configuration with all defaults, in the form of the file, and exit. No cluster is needed, and files with secrets are named and not read")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig file of the cluster; the default is $KUBECONFIG, the cluster the program runs in, or ~/.kube/config")
	flags.StringVar(&f.namespace, "namespace", "", "the namespace of the program's Lease; the default is that of its pod, or "+defaultNamespace)
	flags.StringVar(&f.probeAddress, "health-probe-bind-address", ":8081", "host:port of /healthz and /readyz; 0 for none. Ready means that the bundles have been read once")
	flags.StringVar(&f.logFormat, "log-format", "text", "the format of log lines: text or json")
	flags.IntVarP(&f.verbosity, "verbosity", "v", 0, "how much is logged: 0 what happened, 1 decisions, 4 details")
}

// setLogger returns a logger that writes to out, and sets it as the logger of controller-runtime and klog.
func (f *managerFlags) setLogger(out io.Writer) (logr.Logger, error) {
	if f.verbosity < 0 {
		return logr.Logger{}, usageError(errors.Errorf("--verbosity is %d; it must not be negative", f.verbosity))
	}
	handlerOptions := &slog.HandlerOptions{Level: slog.Level(-f.verbosity), ReplaceAttr: replaceLogAttr}
	var handler slog.Handler
	switch f.logFormat {
	case "text":
		handler = slog.NewTextHandler(out, handlerOptions)
	case "json":
		handler = slog.NewJSONHandler(out, handlerOptions)
	default:
		return logr.Logger{}, usageError(errors.Errorf("--log-format is %q; it must be text or json", f.logFormat))
	}
	logger := logr.FromSlogHandler(handler)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return logger, nil
}

// replaceLogAttr replaces every level below INFO by DEBUG, because slog would print logr's V(1) as DEBUG+3. It removes a source that is an
// address: controller-runtime logs it for a source of requests that is a function or a channel.
func replaceLogAttr(_ []string, a slog.Attr) slog.Attr {
	if level, ok := a.Value.Any().(slog.Level); ok && a.Key == slog.LevelKey && level < slog.LevelInfo {
		a.Value = slog.StringValue("DEBUG")
	}
	if a.Key == "source" && strings.Contains(a.Value.String(), " source: 0x") {
		return slog.Attr{}
	}
	return a
}

// restConfig returns the client configuration for the cluster.
func (f *managerFlags) restConfig(command string) (*rest.Config, error) {
	config, err := loadRESTConfig(f.kubeconfig, "", command)
	if errors.Is(err, errNoKubeconfig) {
		err = usageError(errors.New("there is no kubeconfig file; give one with --kubeconfig or $KUBECONFIG"))
	}
	if err != nil {
		return nil, errors.Wrap(err, "cannot find out how to reach the cluster")
	}
	config.Timeout = 0 // A timeout would end watches.
	return config, nil
}

// leaseNamespace returns the namespace of the program's Lease.
func (f *managerFlags) leaseNamespace() string {
	if f.namespace != "" {
		return f.namespace
	}
	if data, err := os.ReadFile(inClusterNamespace); err == nil {
		if ns := strings.TrimSpace(string(data)); ns != "" {
			return ns
		}
	}
	return defaultNamespace
}
