package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sources returns the files in the volumes of a pod, by the name of the volume and of the file.
func (p *Pod) sources(ctx context.Context, pod corev1.PodSpec) (map[string]map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	volumes := map[string]map[string][]byte{}
	for _, v := range pod.Volumes {
		files := map[string][]byte{}
		switch {
		case v.ConfigMap != nil && v.ConfigMap.Items == nil:
			source, err := p.api.CoreV1().ConfigMaps(p.options.Namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			maps.Copy(files, source.BinaryData)
			for name, text := range source.Data {
				files[name] = []byte(text)
			}
		case v.Secret != nil && v.Secret.Items == nil:
			source, err := p.api.CoreV1().Secrets(p.options.Namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			maps.Copy(files, source.Data)
		default:
			return nil, fmt.Errorf("volume %q is neither a whole ConfigMap nor a whole Secret, which is not supported", v.Name)
		}
		volumes[v.Name] = files
	}
	return volumes, nil
}

// writeVolumes writes the volumes of a pod to this machine.
func (p *Pod) writeVolumes(ctx context.Context, pod corev1.PodSpec, container corev1.Container) error {
	volumes, err := p.sources(ctx, pod)
	if err != nil {
		return err
	}
	for _, m := range container.VolumeMounts {
		files, ok := volumes[m.Name]
		if !ok || m.SubPath != "" {
			return fmt.Errorf("%q is mounted from a volume that is not there, or from a part of one", m.MountPath)
		}
		for name, data := range files {
			text, err := p.rewrite(string(data), container)
			if err != nil {
				return err
			}
			files[name] = []byte(text)
		}
		if err := writeVolume(p.volume(m.Name), files); err != nil {
			return fmt.Errorf("cannot write volume %q: %w", m.Name, err)
		}
	}
	return nil
}

// volume returns the directory of a volume on this machine.
func (p *Pod) volume(name string) string { return filepath.Join(p.options.Dir, "volumes", name) }

// dataLink is the symbolic link to the current version of a volume. The kubelet uses the same name.
const dataLink = "..data"

// writeVolume replaces all files of a volume at the same time, as the kubelet does. Each file is a symbolic link through
// dataLink, which is moved from one version to the next
// (https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/volume/util/atomic_writer.go).
func writeVolume(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	data := filepath.Join(dir, dataLink)
	before, err := os.Readlink(data)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if before != "" && holds(data, files) {
		return nil
	}
	version, err := os.MkdirTemp(dir, "..version-")
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(version, name), content, 0o600); err != nil {
			return err
		}
	}
	next := filepath.Join(dir, dataLink+"_tmp")
	if err := errors.Join(os.Symlink(filepath.Base(version), next), os.Rename(next, data)); err != nil {
		return err
	}
	for name := range files {
		if err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if before == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(dir, before))
}

// holds reports whether a folder holds these files, and no others.
func holds(dir string, files map[string][]byte) bool {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(files) {
		return false
	}
	for name, content := range files {
		if before, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(before, content) {
			return false
		}
	}
	return true
}
