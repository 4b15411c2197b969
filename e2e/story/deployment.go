package story

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// sampleID is the id of the context whose bundles the sample HealthScope refers to.
	sampleID = "171887448792644816"
	// dependencyWait is the time between the sink's readiness and the start of the firewall's deployment.
	dependencyWait = 2 * time.Second
)

// sample returns the path of a file of the application, relative to the root of the source tree.
func sample(name string) string { return filepath.Join("config", "samples", "vfw-context", name) }

// deploy deploys the application, and checks that the firewall was created after the sink.
func (s *Story) deploy(ctx context.Context) (err error) {
	if err := s.show(ctx, "--context", s.env.Edges[1].Context, "apply", "-f", sample("policy.yaml")); err != nil {
		return err
	}
	if s.deployed, err = s.createContext(ctx, "composite-app.yaml"); err != nil {
		return err
	}
	if err := s.context(ctx, "instantiate", "--wait", "--timeout=3m", s.deployed); err != nil {
		return err
	}
	for _, e := range s.env.Edges {
		if err := s.checkOrder(ctx, e.Context); err != nil {
			return fmt.Errorf("in %s: %w", e.Context, err)
		}
	}
	const columns = "custom-columns=NAME:.metadata.name,CREATED:.metadata.creationTimestamp"
	return s.show(ctx, "--context", s.env.Edges[0].Context, "get", "deployments", "-o", columns)
}

// Again deploys the application again after its termination, which requires a new context.
func (s *Story) Again(ctx context.Context) error {
	Heading(s.out, "The application is deployed again")
	if err := s.deploy(ctx); err != nil {
		return err
	}
	return s.judge(ctx)
}

// checkOrder checks that the firewall was created at least dependencyWait after the sink became Ready, less a second because
// Kubernetes stores times in seconds.
func (s *Story) checkOrder(ctx context.Context, edge string) error {
	var times [2]time.Time
	for i, path := range [][]string{
		{"deployment/fw0-sink", "{.status.conditions[?(@.type=='Available')].lastTransitionTime}"}, {"deployment/fw0-firewall", "{.metadata.creationTimestamp}"},
	} {
		out, err := s.kubectl(ctx, "--context", edge, "get", path[0], "-o", "jsonpath="+path[1])
		if err != nil {
			return fmt.Errorf("kubectl get %s: %w: %s", path[0], err, out)
		}
		if times[i], err = time.Parse(time.RFC3339, string(out)); err != nil {
			return err
		}
	}
	if available, made := times[0], times[1]; made.Sub(available) < dependencyWait-time.Second {
		return fmt.Errorf("the firewall was made at %s, and the sink was Ready at %s", made, available)
	}
	return nil
}

// judge creates the HealthScope of the application.
func (s *Story) judge(ctx context.Context) error {
	const scope = "config/samples/vfw/3-healthscope.yaml"
	manifest, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(scope)))
	if err != nil {
		return err
	}
	command(s.out, fmt.Sprintf("sed s/%s/%s/ %s | kubectl apply -f -", sampleID, s.deployed, scope))
	cmd := s.kubectlCommand(ctx, "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(strings.ReplaceAll(string(manifest), sampleID, s.deployed))
	out, err := cmd.CombinedOutput()
	output(s.out, string(out))
	return err
}

// update updates the application to an image of the sink that the second edge refuses.
func (s *Story) update(ctx context.Context) error {
	next, err := s.createContext(ctx, "composite-app-v2.yaml")
	if err != nil {
		return err
	}
	s.updated = next
	out, err := s.runContext(ctx, "update", "--wait", s.deployed, next)
	switch {
	case err == nil:
		return errors.New("no edge has refused the update")
	case exitCode(err) != 1 || !strings.Contains(out, "images must be of registry.k8s.io"):
		return err
	}
	return s.showImages(ctx, "example.org/sink:2", "registry.k8s.io/pause:3.10")
}

func (s *Story) rollBack(ctx context.Context) error {
	if err := s.context(ctx, "rollback", "--wait", s.updated, s.deployed); err != nil {
		return err
	}
	return s.showImages(ctx, "registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10")
}

// showImages shows the image of the sink at each edge, and checks that it is the expected one.
func (s *Story) showImages(ctx context.Context, images ...string) error {
	for i, e := range s.env.Edges {
		args := []string{"--context", e.Context, "get", "deployment", "fw0-sink", "-o", "jsonpath={.spec.template.spec.containers[0].image}{'\\n'}"}
		command(s.out, "kubectl "+quoted(args))
		out, err := s.kubectl(ctx, args...)
		output(s.out, string(out))
		if err != nil {
			return fmt.Errorf("cannot read the image of the sink in %s: %w", e.Context, err)
		}
		if image := strings.TrimSpace(string(out)); image != images[i] {
			return fmt.Errorf("the image of the sink in %s is %q, and must be %q", e.Context, image, images[i])
		}
	}
	return nil
}

func (s *Story) terminate(ctx context.Context) error {
	if err := s.context(ctx, "terminate", "--wait", s.deployed); err != nil {
		return err
	}
	for _, e := range s.env.Edges {
		args := []string{"--context", e.Context, "get", "deployments,services,configmaps,resourcebundlestates", "-l", "emco/deployment-id"}
		command(s.out, "kubectl "+quoted(args))
		out, err := s.kubectl(ctx, args...)
		output(s.out, string(out))
		if err != nil {
			return fmt.Errorf("cannot look for the application in %s: %w", e.Context, err)
		}
		if !strings.HasPrefix(string(out), "No resources found") {
			return fmt.Errorf("the application is still in %s", e.Context)
		}
	}
	return nil
}

// createContext creates the context of a composite app, and returns its id.
func (s *Story) createContext(ctx context.Context, file string) (string, error) {
	out, err := s.runContext(ctx, "apply", "-f", sample(file))
	return strings.TrimSpace(out), err
}

// context runs `healthscope context` and shows the command and its output.
func (s *Story) context(ctx context.Context, args ...string) error {
	_, err := s.runContext(ctx, args...)
	return err
}

func (s *Story) runContext(ctx context.Context, args ...string) (string, error) {
	command(s.out, "healthscope context --config "+filepath.Base(s.env.ContextsConfiguration())+" "+quoted(args))
	out, err := s.env.Contexts(ctx, args...)
	output(s.out, out)
	return out, err
}
