package kubelet

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// listener matches a listen address in arguments and in configuration files:
// --health-probe-bind-address=:8081, bindAddress: "127.0.0.1:8082", anonymousBindAddress: ':8083'.
var listener = regexp.MustCompile(`(?i)(bind-?address(?:=|: *["']?)[^\s"':]*:)([0-9]+)`)

// rewrite replaces paths and ports of the container with those of this machine. It keeps the host of a listen address, because
// the protocol depends on whether it is a loopback address.
func (p *Pod) rewrite(text string, container corev1.Container) (string, error) {
	mounts := slices.Clone(container.VolumeMounts)
	// Longer paths are replaced first, because one path may be a prefix of another.
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return cmp.Compare(len(b.MountPath), len(a.MountPath)) })
	for _, m := range mounts {
		text = strings.ReplaceAll(text, m.MountPath+"/", p.volume(m.Name)+"/")
	}
	var problem error
	text = listener.ReplaceAllStringFunc(text, func(match string) string {
		parts := listener.FindStringSubmatch(match)
		port, err := strconv.Atoi(parts[2])
		if err == nil {
			_, err = p.Address(port)
		}
		problem = cmp.Or(problem, err)
		return parts[1] + strconv.Itoa(p.ports[port])
	})
	return text, problem
}
