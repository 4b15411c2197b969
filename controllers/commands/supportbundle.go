package commands

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/app"
	"github.com/healthscope/healthscope/controllers/support"
)

// supportBundleLong is the help of the command support-bundle.
const supportBundleLong = `Collect the state of an installation in an archive, to find out what is wrong.

The command reads the cluster with the rights of the caller. errors.txt, in the
archive, names what could not be read. Secrets are not read, and text that looks
like a password, token or key is removed; look at the archive before you pass it on.`

// supportBundle are the flags of the command support-bundle.
type supportBundle struct {
	kubeconfig, context          string
	namespace, clustersNamespace string
	config, output               string
	metricsTokenFile             string
	selector                     string
	scopes                       bool
	logLines                     int64
	timeout                      time.Duration
}

func newSupportBundle() *cobra.Command {
	var s supportBundle
	c := &cobra.Command{
		Use: "support-bundle", Short: "Collect the state of an installation in an archive", Long: supportBundleLong, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return errors.Wrap(s.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), time.Now()), "cannot write a support bundle")
		},
	}
	flags := c.Flags()
	flags.StringVarP(&s.output, "output", "o", "", "the file to write, which must not exist, or - for standard output; the default is healthscope-support-<UTC time>.tar.gz")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "the kubeconfig file of the cluster; the default is $KUBECONFIG, or ~/.kube/config")
	flags.StringVar(&s.context, "context", "", "the context of the cluster in that file; the default is the current one")
	flags.StringVar(&s.namespace, "namespace", defaultNamespace, "the namespace of controller and monitor")
	flags.StringVar(&s.selector, "selector", "app.kubernetes.io/name=healthscope", "a label selector for the pods of controller and monitor; logs and metrics are read only from these")
	flags.StringVar(&s.clustersNamespace, "hub-namespace", corev1alpha2.DefaultClustersNamespace, "the namespace, in the hub, of the Secrets of clusters")
	flags.StringVar(&s.config, "config", "", "a configuration file to add; those in ConfigMaps of the namespace are added anyway")
	flags.BoolVar(&s.scopes, "scopes", true, "add HealthScopes and bundles, with the names of all resources in them")
	flags.Int64Var(&s.logLines, "log-lines", 2000, "how many lines of each container's log are added")
	flags.StringVar(&s.metricsTokenFile, "metrics-token-file", "", "a file with a bearer token of Kubernetes that may get /metrics, for pods that require one")
	flags.DurationVar(&s.timeout, "timeout", 2*time.Minute, "how long reading may take; what is not read by then is left out")
	return c
}

// run writes the archive, and prints a summary on errOut.
func (s *supportBundle) run(ctx context.Context, out, errOut io.Writer, now time.Time) error {
	if _, err := labels.Parse(s.selector); err != nil || strings.TrimSpace(s.selector) == "" {
		return usageError(errors.Errorf("--selector is %q; it must be a label selector, such as app.kubernetes.io/name=healthscope", s.selector))
	}
	if s.logLines < 0 {
		return usageError(errors.Errorf("--log-lines is %d; it must not be negative", s.logLines))
	}
	o := support.Options{
		Namespace: s.namespace, Selector: s.selector, ClustersNamespace: s.clustersNamespace, Version: versionLine(), IncludeScopes: s.scopes, LogLines: s.logLines, Now: now,
		ValidateConfiguration: func(data []byte) error { _, err := app.ParseConfig(data); return err },
	}
	var err error
	if s.config != "" {
		if o.Configuration, err = os.ReadFile(s.config); err != nil {
			return usageError(errors.Wrap(err, "cannot read the configuration file"))
		}
	}
	if s.metricsTokenFile != "" {
		if o.MetricsToken, err = readToken("metrics-token-file", s.metricsTokenFile); err != nil {
			return usageError(err)
		}
	}
	if o.Config, err = loadRESTConfig(s.kubeconfig, s.context, "support-bundle"); err != nil {
		return errors.Wrap(err, "cannot find out how to reach the cluster")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, errors.Errorf("not done after %s; increase --timeout", s.timeout))
	defer cancel()
	p := newProgress(errOut)
	p.showf("reading what is known of the installation, for up to %s", s.timeout)
	name, summary, err := s.write(ctx, out, o)
	p.clear()
	if err != nil {
		return err
	}
	fmt.Fprintf(errOut, "%s: %d files", name, summary.Files)
	if len(summary.Problems) > 0 {
		fmt.Fprintf(errOut, "; not everything could be read: see errors.txt in it")
	}
	fmt.Fprintln(errOut)
	return nil
}

// write writes the archive to the output of the flags, and returns its name. It removes a file that it cannot write completely.
func (s *supportBundle) write(ctx context.Context, out io.Writer, o support.Options) (name string, summary support.Result, err error) {
	if s.output == "-" {
		summary, err = support.Write(ctx, out, o)
		return "standard output", summary, err
	}
	name = s.output
	if name == "" {
		name = "healthscope-support-" + o.Now.UTC().Format("20060102T150405Z") + ".tar.gz"
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", summary, errors.Wrap(err, "cannot create the file")
	}
	summary, err = support.Write(ctx, file, o)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", summary, errors.Join(err, os.Remove(name))
	}
	return name, summary, nil
}
