package chart

import (
	"io"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/commands"
)

// clusterWide are the kinds of the chart that have no namespace.
var clusterWide = []string{"Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}

func TestObjectsAreLabelledAndHaveANamespace(t *testing.T) {
	for title, values := range installations {
		if title == "more objects" {
			continue // The user sets their labels.
		}
		for _, o := range render(t, values, `commonLabels: {common: label}`) {
			for key, want := range map[string]string{"app.kubernetes.io/name": "healthscope", "app.kubernetes.io/instance": Release, "common": "label"} {
				if got := o.GetLabels()[key]; got != want {
					t.Errorf("%s: %s %q has label %s=%q, want %q", title, o.GetKind(), o.GetName(), key, got, want)
				}
			}
			if slices.Contains(clusterWide, o.GetKind()) != (o.GetNamespace() == "") {
				t.Errorf("%s: %s %q has namespace %q", title, o.GetKind(), o.GetName(), o.GetNamespace())
			}
		}
	}
}

// configuration returns the configuration file of a component as the program reads it.
func configuration(t *testing.T, objects []*unstructured.Unstructured, name string) configv1alpha1.Configuration {
	t.Helper()
	var c configv1alpha1.Configuration
	text := one[corev1.ConfigMap](t, objects, "ConfigMap", name).Data["config.yaml"]
	if err := yaml.UnmarshalStrict([]byte(text), &c); err != nil {
		t.Fatalf("the program does not take the configuration file of %s: %v\n%s", name, err, text)
	}
	given := c.TypeMeta
	configv1alpha1.SetDefaults(&c)
	c.TypeMeta = given
	if errs := configv1alpha1.Validate(&c); len(errs) > 0 {
		t.Errorf("the program does not take the configuration file of %s: %v\n%s", name, errs.ToAggregate(), text)
	}
	return c
}

// TestProgramsStart checks that the program accepts the arguments and the configuration file of every container, and finds its files.
func TestProgramsStart(t *testing.T) {
	for title, values := range installations {
		objects := render(t, values)
		for _, o := range objects {
			if o.GetKind() != "Deployment" {
				continue
			}
			d := one[appsv1.Deployment](t, objects, "Deployment", o.GetName())
			pod := d.Spec.Template.Spec
			takesArguments(t, title, pod.Containers[0].Args)
			mounted := mounts(t, title, pod)
			text := one[corev1.ConfigMap](t, objects, "ConfigMap", d.Name).Data["config.yaml"]
			configuration(t, objects, d.Name)
			for _, file := range files(text) {
				folder := file[:strings.LastIndex(file, "/")]
				if !slices.Contains(mounted, folder) {
					t.Errorf("%s: the configuration of %s names %s; mounted are %q", title, d.Name, file, mounted)
				}
			}
		}
	}
}

func takesArguments(t *testing.T, title string, args []string) {
	t.Helper()
	root := commands.NewCommand()
	root.SetOut(io.Discard)
	command, flags, err := root.Find(args)
	if err != nil || command == root {
		t.Fatalf("%s: there is no command %q: %v", title, args, err)
	}
	if err := command.ParseFlags(flags); err != nil {
		t.Errorf("%s: the program does not take %q: %v", title, args, err)
	}
	if got, err := command.Flags().GetString("config"); err != nil || got != "/etc/healthscope/config/config.yaml" {
		t.Errorf("%s: --config is %q, %v", title, got, err)
	}
}

// mounts returns the mount paths of a pod, and reports volumes and mounts without a match.
func mounts(t *testing.T, title string, pod corev1.PodSpec) []string {
	t.Helper()
	var volumes, mounted, paths []string
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		mounted, paths = append(mounted, m.Name), append(paths, m.MountPath)
	}
	slices.Sort(volumes)
	slices.Sort(mounted)
	if !slices.Equal(volumes, mounted) {
		t.Errorf("%s: volumes are %q, mounted are %q", title, volumes, mounted)
	}
	return paths
}

// files returns the paths that a configuration file names.
func files(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if key, path, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && strings.HasSuffix(key, "File") {
			found = append(found, path)
		}
	}
	return found
}
