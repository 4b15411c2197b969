package commands

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/enrol"
)

// completionTimeout limits how long a shell waits for names. After it, there are no completions.
const completionTimeout = 2 * time.Second

// flagCompletions complete the values of flags, in all commands that have them.
var flagCompletions = map[string]cobra.CompletionFunc{
	"context":              completeNames(contextNames("kubeconfig")),
	"hub-context":          completeNames(contextNames("hub-kubeconfig")),
	"namespace":            completeNames(hubNamespaces),
	"hub-namespace":        completeNames(hubNamespaces),
	"controller-namespace": completeNames(hubNamespaces),
	"cluster":              completeNames(clusterNames),
	"namespaces":           completeNames(memberNamespaces),
	"probe-namespaces":     completeNames(memberNamespaces),
	"color":                fixedWords(colorAuto, colorAlways, colorNever),
	"log-format":           fixedWords("text", "json"),
	"detail":               fixedWords("summary", "all", "detail", "small", "full", "rsync"),
	"type":                 fixedWords("rsync", "cluster", "all"),
}

// argumentCompletions complete the arguments of commands.
var argumentCompletions = map[string]cobra.CompletionFunc{
	"healthscope status":          firstArgument(completeNames(scopeNames)),
	"healthscope clusters add":    cobra.NoFileCompletions,
	"healthscope clusters remove": firstArgument(completeNames(clusterNames)),
}

// complete adds completions to a command.
func complete(c *cobra.Command) {
	if find := argumentCompletions[c.CommandPath()]; find != nil {
		c.ValidArgsFunction = find
	}
	for name, find := range flagCompletions {
		if c.Flags().Lookup(name) != nil || c.PersistentFlags().Lookup(name) != nil { // LocalFlags would add the parents' flags to the command.
			if err := c.RegisterFlagCompletionFunc(name, find); err != nil {
				panic(err) // It has been registered twice.
			}
		}
	}
}

func fixedWords(all ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
}

// firstArgument completes only the first argument.
func firstArgument(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(c, args, toComplete)
	}
}

// completeNames completes with names from a cluster or a kubeconfig file. On an error there are no completions: a shell cannot show errors.
func completeNames(find func(ctx context.Context, c *cobra.Command) ([]string, error)) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
		defer cancel()
		found, err := find(ctx, c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found = slices.DeleteFunc(found, func(name string) bool { return !strings.HasPrefix(name, toComplete) })
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// flagValue returns the value of the first of the named flags that a command has, or an empty string.
func flagValue(c *cobra.Command, names ...string) string {
	for _, name := range names {
		if f := c.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
	}
	return ""
}

// contextNames returns a function that returns the contexts of the kubeconfig file that a flag names.
func contextNames(flag string) func(context.Context, *cobra.Command) ([]string, error) {
	return func(_ context.Context, c *cobra.Command) ([]string, error) {
		config, err := newClientConfig(flagValue(c, flag), "").RawConfig()
		return slices.Sorted(maps.Keys(config.Contexts)), err
	}
}

// hubNamespaces returns the namespaces of the hub.
func hubNamespaces(ctx context.Context, c *cobra.Command) ([]string, error) {
	return listNames(ctx, flagValue(c, "hub-kubeconfig", "kubeconfig"), flagValue(c, "hub-context", "context"), namespacesResource, "")
}

// memberNamespaces returns the namespaces of the member.
func memberNamespaces(ctx context.Context, c *cobra.Command) ([]string, error) {
	return listNames(ctx, flagValue(c, "kubeconfig"), flagValue(c, "context"), namespacesResource, "")
}

// scopeNames returns the names of the scopes of a namespace.
func scopeNames(ctx context.Context, c *cobra.Command) ([]string, error) {
	kubeconfig, kubeContext, namespace := flagValue(c, "kubeconfig"), flagValue(c, "context"), flagValue(c, "namespace")
	if namespace == "" {
		var err error
		if namespace, _, err = newClientConfig(kubeconfig, kubeContext).Namespace(); err != nil {
			return nil, err
		}
	}
	return listNames(ctx, kubeconfig, kubeContext, scopesResource, namespace)
}

var namespacesResource = corev1.SchemeGroupVersion.WithResource("namespaces")

// listNames returns the names of the objects of a kind, in a namespace if it is not empty.
func listNames(ctx context.Context, kubeconfig, kubeContext string, kind schema.GroupVersionResource, namespace string) ([]string, error) {
	config, err := loadRESTConfig(kubeconfig, kubeContext, "completion")
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	list, err := client.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := make([]string, len(list.Items))
	for i := range list.Items {
		found[i] = list.Items[i].Name
	}
	return found, nil
}

// clusterNames returns the names of the hub's clusters, except for the hub itself.
func clusterNames(ctx context.Context, c *cobra.Command) ([]string, error) {
	h := hubFlags{kubeconfig: flagValue(c, "hub-kubeconfig", "kubeconfig"), context: flagValue(c, "hub-context", "context")}
	hub, _, err := h.client("completion")
	if err != nil {
		return nil, err
	}
	r, err := enrol.Read(ctx, hub, cmp.Or(flagValue(c, "hub-namespace"), corev1alpha2.DefaultClustersNamespace), time.Now())
	var found []string
	for _, cluster := range r.Clusters {
		if !cluster.Local {
			found = append(found, cluster.Name)
		}
	}
	return found, err
}
