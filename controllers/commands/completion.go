package commands

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/enrol"
)

// completionTimeout is how long a shell waits for names. Without an answer there are none.
const completionTimeout = 2 * time.Second

// flagCompletions complete the values of flags, in all commands that have them.
var flagCompletions = map[string]cobra.CompletionFunc{
	"context":              names(contextNames),
	"hub-context":          names(contextNames),
	"namespace":            names(namespaces),
	"hub-namespace":        names(namespaces),
	"controller-namespace": names(namespaces),
	"cluster":              names(clusterNames),
	"namespaces":           names(memberNamespaces),
	"probe-namespaces":     names(memberNamespaces),
	"color":                words(colorAuto, colorAlways, colorNever),
	"log-format":           words("text", "json"),
	"detail":               words("summary", "all", "detail", "small", "full", "rsync"),
	"type":                 words("rsync", "cluster", "all"),
}

// argumentCompletions complete the arguments of commands.
var argumentCompletions = map[string]cobra.CompletionFunc{
	"healthscope status":          first(names(scopeNames)),
	"healthscope clusters add":    cobra.NoFileCompletions,
	"healthscope clusters remove": first(names(clusterNames)),
}

// addCompletions adds completions to a command and those below it.
func addCompletions(c *cobra.Command) {
	if complete := argumentCompletions[c.CommandPath()]; complete != nil {
		c.ValidArgsFunction = complete
	}
	for name, complete := range flagCompletions {
		if c.Flags().Lookup(name) != nil || c.PersistentFlags().Lookup(name) != nil { // LocalFlags would add those of the parents to it.
			if err := c.RegisterFlagCompletionFunc(name, complete); err != nil {
				panic(err) // It has been registered twice.
			}
		}
	}
	for _, below := range c.Commands() {
		addCompletions(below)
	}
}

func words(all ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
}

// first completes the first argument only.
func first(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(c, args, begun)
	}
}

// names completes by the names that a cluster or a kubeconfig file has. What cannot be asked for has none: a shell has no place for errors.
func names(find func(ctx context.Context, c *cobra.Command) ([]string, error)) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
		defer cancel()
		found, err := find(ctx, c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found = slices.DeleteFunc(found, func(name string) bool { return !strings.HasPrefix(name, begun) })
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// flag returns the value of the first of some flags that a command has; empty for none.
func flag(c *cobra.Command, names ...string) string {
	for _, name := range names {
		if f := c.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
	}
	return ""
}

// contextNames returns the contexts of the kubeconfig file that goes with the flag.
func contextNames(_ context.Context, c *cobra.Command) ([]string, error) {
	config, err := clientConfigOf(flag(c, "kubeconfig", "hub-kubeconfig"), "").RawConfig()
	return slices.Sorted(maps.Keys(config.Contexts)), err
}

// namespaces returns the namespaces of the hub.
func namespaces(ctx context.Context, c *cobra.Command) ([]string, error) {
	return namespacesOf(ctx, flag(c, "hub-kubeconfig", "kubeconfig"), flag(c, "hub-context", "context"))
}

// memberNamespaces returns the namespaces of the member.
func memberNamespaces(ctx context.Context, c *cobra.Command) ([]string, error) {
	return namespacesOf(ctx, flag(c, "kubeconfig"), flag(c, "context"))
}

func namespacesOf(ctx context.Context, kubeconfig, context string) ([]string, error) {
	config, err := configOf(kubeconfig, context, "completion")
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := make([]string, len(list.Items))
	for i := range list.Items {
		found[i] = list.Items[i].Name
	}
	return found, nil
}

// clusterNames returns the names of the clusters of the hub, without its own.
func clusterNames(ctx context.Context, c *cobra.Command) ([]string, error) {
	h := hubFlags{kubeconfig: flag(c, "hub-kubeconfig", "kubeconfig"), context: flag(c, "hub-context", "context")}
	hub, _, err := h.client("completion")
	if err != nil {
		return nil, err
	}
	namespace := flag(c, "hub-namespace")
	if namespace == "" {
		namespace = corev1alpha2.DefaultClustersNamespace
	}
	r, err := enrol.Read(ctx, hub, namespace, time.Now())
	var found []string
	for _, cluster := range r.Clusters {
		if !cluster.Local {
			found = append(found, cluster.Name)
		}
	}
	return found, err
}

// scopeNames returns the names of the scopes of a namespace.
func scopeNames(ctx context.Context, c *cobra.Command) ([]string, error) {
	f := statusFlags{kubeconfig: flag(c, "kubeconfig"), context: flag(c, "context"), namespace: flag(c, "namespace"), timeout: completionTimeout}
	scopes, err := f.kubeScopes(target{kind: ofScopes})
	if err != nil {
		return nil, err
	}
	list, err := scopes.read(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]string, len(list.Items))
	for i := range list.Items {
		found[i] = list.Items[i].GetName()
	}
	return found, nil
}
