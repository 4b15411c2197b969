package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestOnlyPathsAndPortsAreRewritten(t *testing.T) {
	t.Parallel()
	p := &Pod{options: Options{Dir: "/here"}, ports: map[int]int{8080: 1, 8081: 2, 8083: 3}}
	container := corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "a", MountPath: "/etc/a"}, {Name: "b", MountPath: "/etc/a/b"}}}
	for text, want := range map[string]string{
		"--health-probe-bind-address=:8081":              "--health-probe-bind-address=:2",
		`bindAddress: ":8080"`:                           `bindAddress: ":1"`,
		"bindAddress: 0.0.0.0:8080":                      "bindAddress: 0.0.0.0:1",
		"anonymousBindAddress: 127.0.0.1:8083\nother: 1": "anonymousBindAddress: 127.0.0.1:3\nother: 1",
		`bindAddress: "0"`:                               `bindAddress: "0"`,
		"url: http://aai:8080":                           "url: http://aai:8080",
		"--config=/etc/a/config.yaml":                    "--config=/here/volumes/a/config.yaml",
		"certFile: /etc/a/b/tls.crt":                     "certFile: /here/volumes/b/tls.crt",
		"/etc/another/file":                              "/etc/another/file",
	} {
		if got, err := p.rewrite(text, container); err != nil || got != want {
			t.Errorf("%q: want %q, got %q (%v)", text, want, got, err)
		}
	}
}

func TestAPortIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	p := &Pod{ports: map[int]int{}}
	first, err := p.Address(8080)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := p.rewrite("bindAddress: :8080", corev1.Container{}); err != nil || !strings.HasSuffix(first, strings.TrimPrefix(text, "bindAddress: ")) {
		t.Errorf("the port is %s and then %q (%v)", first, text, err)
	}
}

func TestAVolumeChangesAllAtOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "volume")
	version := func() string {
		target, err := os.Readlink(filepath.Join(dir, dataLink))
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
	seen := map[string]bool{}
	for _, generation := range []int{1, 2, 2} {
		files := map[string][]byte{"tls.crt": fmt.Appendf(nil, "certificate %d", generation), "tls.key": fmt.Appendf(nil, "key %d", generation)}
		if err := writeVolume(dir, files); err != nil {
			t.Fatal(err)
		}
		for name, want := range files {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != string(want) {
				t.Errorf("%s: want %q, got %q (%v)", name, want, got, err)
			}
		}
		seen[version()] = true
	}
	if len(seen) != 2 {
		t.Errorf("want a new version for new contents, and none for the same; got %d of them", len(seen))
	}
	if left, err := filepath.Glob(filepath.Join(dir, "..version-*")); err != nil || len(left) != 1 {
		t.Errorf("want the present version only, got %q (%v)", left, err)
	}
}

func TestWhatCannotBeDoneIsSaid(t *testing.T) {
	t.Parallel()
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz"}}}
	for title, pod := range map[string]corev1.PodSpec{
		"two containers":    {Containers: make([]corev1.Container, 2)},
		"a command":         {Containers: []corev1.Container{{Command: []string{"sh"}, ReadinessProbe: probe}}},
		"a variable":        {Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{}}}, ReadinessProbe: probe}}},
		"no probe":          {Containers: []corev1.Container{{}}},
		"an init container": {InitContainers: make([]corev1.Container, 1), Containers: []corev1.Container{{ReadinessProbe: probe}}},
	} {
		if _, err := only(pod); err == nil {
			t.Errorf("%s: there is no error", title)
		}
	}
	if _, err := only(corev1.PodSpec{Containers: []corev1.Container{{ReadinessProbe: probe}}}); err != nil {
		t.Error(err)
	}
}
