// Package story runs a scenario with real programs in an environment of three clusters. Two edges join a hub. An application is
// deployed, is healthy, fails, recovers, and is unreachable for a while; kubectl, REST, Prometheus and A&AI show each state. Then the
// application is updated, rolled back and terminated. Each step is checked, and prints what a user types and sees. The demo and the
// end-to-end tests run the scenario.
package story

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/installation"
)

const (
	// stepTimeout is the maximum duration of one step.
	stepTimeout = 3 * time.Minute
	// poll is the interval of the checks whether a step has reached its state. A check may run a program, which takes CPU.
	poll = 500 * time.Millisecond
	// stateLabel is the label in A&AI that holds a resource's state.
	stateLabel = "healthscope.core.oam.dev/status"
)

// Story is one run of the scenario, in an environment whose edges have not joined yet.
type Story struct {
	out  io.Writer
	env  *installation.Environment
	root string
	// deployed is the id of the application's AppContext, and updated is that of its update.
	deployed, updated string
}

// New returns a story that runs in an environment and prints to out. root is the root of the source tree, which holds the samples.
func New(env *installation.Environment, root string, out io.Writer) *Story {
	return &Story{out: out, env: env, root: root}
}

// step is one step of the story, with its title and its function.
type step struct {
	title string
	do    func(context.Context) error
}

// Tell runs all steps of the story. An error names the step.
func (s *Story) Tell(ctx context.Context) error {
	for n, st := range []step{
		{"Two edge clusters join the hub", s.join},
		{"An application is deployed at both edges: the virtual firewall, of three apps. Its firewall waits until the sink is Ready", s.deploy},
		{"In the hub, a HealthScope over the three apps", s.judge},
		{"It is healthy: kubectl", s.showHealthy},
		{"The same by REST", s.showREST(200, "healthy")},
		{"The same for Prometheus", s.showMetrics("Ready")},
		{"The same in A&AI, related to its VNF", s.showInventory("Ready")},
		{"The sink's pod begins to crash at one edge", s.breakPod},
		{"The scope says what is wrong, where, and since when", s.showUnhealthy},
		{"By REST", s.showREST(200, "unhealthy")},
		{"For Prometheus", s.showMetrics("Failed")},
		{"In A&AI", s.showInventory("Failed")},
		{"The pod recovers", s.heal},
		{"And so does everything", s.showHealthy},
		{"The other edge is cut off", s.cutOff},
		{"What cannot be seen is unknown, neither healthy nor failed; the rest still works", s.showLost},
		{"A&AI keeps what was known last", s.showInventory("Ready")},
		{"The edge is back", s.comeBack},
		{"And everything is as it was", s.showHealthy},
		{"An update of the sink: one edge refuses it, and it is said which and why", s.update},
		{"It is rolled back", s.rollBack},
		{"The application is terminated", s.terminate},
	} {
		Heading(s.out, fmt.Sprintf("%d. %s", n+1, st.title))
		stepCtx, cancel := context.WithTimeout(ctx, stepTimeout)
		err := st.do(stepCtx)
		cancel()
		if err != nil && ctx.Err() == nil {
			output(s.out, s.env.LogTails())
			return fmt.Errorf("step %d, %q, failed: %w", n+1, st.title, err)
		}
		if err != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (s *Story) showHealthy(ctx context.Context) error {
	if err := s.show(ctx, "wait", "--for=condition=Ready", "hs/vfw", "--timeout=3m"); err != nil {
		return err
	}
	// A Deployment is Ready shortly before its rollout ends, and one edge may be ahead of the other. The output is shown after both.
	if err := s.until(ctx, "hs/vfw", "{.status.health} {.status.resourcesReady} {.status.clustersReachable}", "healthy 18/18 2/2"); err != nil {
		return err
	}
	return errors.Join(s.show(ctx, "get", "hs"), s.show(ctx, "--context", s.env.Edges[0].Context, "get", "rbs"))
}

func (s *Story) breakPod(ctx context.Context) error {
	return s.show(ctx, "--context", s.env.Edges[0].Context, "annotate", "pod", "-l", "app=sink", controlplane.CrashAnnotation+"=true")
}

func (s *Story) heal(ctx context.Context) error {
	return s.show(ctx, "--context", s.env.Edges[0].Context, "annotate", "pod", "-l", "app=sink", controlplane.CrashAnnotation+"-")
}

func (s *Story) showUnhealthy(ctx context.Context) error {
	if err := s.until(ctx, "hs/vfw", "{.status.health} {.status.culprits[0].reason}", "unhealthy CrashLoopBackOff"); err != nil {
		return err
	}
	return errors.Join(
		s.show(ctx, "get", "hs", "-o", "wide"),
		s.show(ctx, "get", "hs", "vfw", "-o", "jsonpath={range .status.culprits[*]}{.app}: {.kind}/{.name} is {.state}, {.reason}, since {.since}{'\\n'}  {.cause}{'\\n'}{end}"),
		s.show(ctx, "get", "events", "--field-selector", "involvedObject.kind=HealthScope"),
	)
}

// showREST returns a step that waits until the REST server answers with a health, and shows the answer.
func (s *Story) showREST(status int, health string) func(context.Context) error {
	return func(ctx context.Context) error {
		url := s.env.API + "/scopes/vfw"
		var body string
		err := await(ctx, func() (string, bool) {
			code, text, err := s.env.Text(ctx, url)
			body = text
			return fmt.Sprintf("%d %s %v", code, strings.TrimSpace(text), err), err == nil && code == status && strings.TrimSpace(text) == health
		})
		if err != nil {
			return err
		}
		command(s.out, "curl -H 'Accept: text/plain' "+url)
		output(s.out, body)
		command(s.out, "curl -s "+url+" | jq")
		_, document, err := s.env.JSON(ctx, url)
		if err != nil {
			return err
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, []byte(document), "", "  "); err != nil {
			return fmt.Errorf("the answer is not JSON: %w", err)
		}
		output(s.out, pretty.String())
		return nil
	}
}

// showMetrics returns a step that waits for the metric of the scope's state, and shows its series.
func (s *Story) showMetrics(state string) func(context.Context) error {
	return func(ctx context.Context) error {
		want := fmt.Sprintf(`healthscope_scope_state{namespace="default",scope="vfw",state=%q} 1`, state)
		var lines []string
		err := await(ctx, func() (string, bool) {
			_, text, err := s.env.Text(ctx, s.env.Metrics)
			lines = slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return !strings.HasPrefix(l, "healthscope_scope_") })
			return fmt.Sprintf("%q %v", lines, err), slices.Contains(lines, want)
		})
		if err != nil {
			return err
		}
		command(s.out, "curl -s "+s.env.Metrics+" | grep ^healthscope_scope_")
		output(s.out, strings.Join(lines, "\n"))
		return nil
	}
}

// showInventory returns a step that waits until A&AI holds the state of the first edge's sink, and shows the workloads that A&AI holds.
func (s *Story) showInventory(state string) func(context.Context) error {
	return func(ctx context.Context) error {
		var objects []installation.Object
		err := await(ctx, func() (string, bool) {
			var err error
			objects, err = s.env.Objects(ctx)
			sink := slices.IndexFunc(objects, func(o installation.Object) bool {
				return o.String() == "Deployment/fw0-sink" && o.Body["data-source"] == s.env.Edges[0].Cluster()
			})
			if err != nil || sink < 0 {
				return fmt.Sprintf("%d objects, without the sink's Deployment (%v)", len(objects), err), false
			}
			return "the sink's Deployment is " + objects[sink].Label(stateLabel), objects[sink].Label(stateLabel) == state
		})
		if err != nil {
			return err
		}
		output(s.out, fmt.Sprintf("\nOf the %d k8s-resources of tenant %s in A&AI the workloads, with state, reason and what they are related to:\n", len(objects), installation.TenantID))
		for _, o := range objects {
			if o.Body["kind"] == "Deployment" {
				line := fmt.Sprintf("%-28s %-24s %-8s %-17s %s", o.Body["data-source"], o, o.Label(stateLabel), o.Label("healthscope.core.oam.dev/reason"), strings.Join(o.Related(), ", "))
				output(s.out, strings.TrimRight(line, " "))
			}
		}
		return nil
	}
}

// until waits until fields of an object, as a JSONPath template prints them, have a value.
func (s *Story) until(ctx context.Context, object, path, want string) error {
	return await(ctx, func() (string, bool) {
		out, err := s.kubectl(ctx, "get", object, "-o", "jsonpath="+path)
		got := strings.TrimSpace(string(out))
		return got, err == nil && got == want
	})
}

// await calls look until it returns true. The error contains what look returned last.
func await(ctx context.Context, look func() (got string, ok bool)) error {
	var last string
	err := wait.PollUntilContextCancel(ctx, poll, true, func(context.Context) (bool, error) {
		var ok bool
		last, ok = look()
		return ok, nil
	})
	if err != nil {
		return fmt.Errorf("it did not come true in time: %s", last)
	}
	return nil
}

// kubectl runs kubectl with the contexts of all clusters. The hub's context is the current one.
func (s *Story) kubectl(ctx context.Context, args ...string) ([]byte, error) {
	return s.kubectlCommand(ctx, args...).CombinedOutput()
}

func (s *Story) kubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := s.env.Hub.KubectlCommand(ctx, args...)
	cmd.Dir = s.root
	cmd.Env = append(cmd.Env, "KUBECONFIG="+s.env.Kubeconfigs())
	return cmd
}

// show runs kubectl and shows the command and its output.
func (s *Story) show(ctx context.Context, args ...string) error {
	command(s.out, "kubectl "+quoted(args))
	out, err := s.kubectl(ctx, args...)
	output(s.out, string(out))
	if err != nil {
		return fmt.Errorf("kubectl %s: %w", args[0], err)
	}
	return nil
}
