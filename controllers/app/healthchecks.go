package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/metric"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
	"github.com/healthscope/healthscope/healthscope/rules/expr"
)

var _ rules.UserRules = &healthChecks{}

// metricRuleErrors is the metric of rules that cannot be used. It is computed at scrape time.
var metricRuleErrors = metric.New(metric.Gauge, "healthscope_health_rule_errors",
	"1 for each [rule of yours](rules.md) that cannot be used. The others have no series. Monitor and controller have it, each replica.", "rule")

// healthChecks holds the health check expressions in force. It implements rules.UserRules, and the expressions can be
// replaced while it is in use. It is the collector of metricRuleErrors.
type healthChecks struct {
	logger   logr.Logger
	compiled atomic.Pointer[compiledChecks]
	changed  subscribers[func()]
}

// compiledChecks are expressions and what is wrong with them.
type compiledChecks struct {
	set      *expr.Set
	problems []expr.RuleError
	total    int
}

// newHealthChecks compiles the expressions that the program starts with.
func newHealthChecks(exprs []configv1alpha1.HealthCheckExpr, logger logr.Logger) *healthChecks {
	h := &healthChecks{logger: logger}
	h.use(exprs)
	return h
}

// use compiles expressions, puts those that compile in force and logs the others. Then it notifies the subscribers.
func (h *healthChecks) use(exprs []configv1alpha1.HealthCheckExpr) {
	set, problems := expr.Compile(exprs)
	h.compiled.Store(&compiledChecks{set: set, problems: problems, total: len(exprs)})
	for i := range problems {
		h.logger.Error(problems[i], "A health check is left out; the others count")
	}
	for _, changed := range h.changed.list() {
		changed()
	}
}

// Subscribe calls changed whenever the expressions change.
func (h *healthChecks) Subscribe(changed func()) { h.changed.add(changed) }

// Problem returns a message that names the rules that cannot be used; empty if there are none.
func (h *healthChecks) Problem() string {
	c := h.compiled.Load()
	if len(c.problems) == 0 {
		return ""
	}
	names := c.invalidRules()
	return fmt.Sprintf("%d of %d health checks cannot be used: %s. The first: %v", len(names), c.total, strings.Join(names, ", "), c.problems[0])
}

// invalidRules returns the names of the rules that cannot be used, in the order of the file, each once.
func (c *compiledChecks) invalidRules() []string {
	names := make([]string, len(c.problems))
	for i := range c.problems {
		names[i] = c.problems[i].Rule
	}
	return slices.Compact(names) // The problems are in the order of the rules.
}

// Covers implements rules.UserRules.
func (h *healthChecks) Covers(apiVersion, kind string) bool {
	return h.compiled.Load().set.Covers(apiVersion, kind)
}

// Evaluate implements rules.UserRules.
func (h *healthChecks) Evaluate(object map[string]any) (result healthscope.Result, rule string, matched bool) {
	return h.compiled.Load().set.Evaluate(object)
}

// Describe implements prometheus.Collector.
func (*healthChecks) Describe(out chan<- *prometheus.Desc) { out <- metricRuleErrors.Desc }

// Collect implements prometheus.Collector.
func (h *healthChecks) Collect(out chan<- prometheus.Metric) {
	for _, name := range h.compiled.Load().invalidRules() {
		out <- metricRuleErrors.Value(1, name)
	}
}

// addHealthChecks adds to a manager a watch that updates the health checks from the configuration file, and registers the metrics of
// both and of the build.
func (o *Options) addHealthChecks(mgr ctrl.Manager, checks *healthChecks, running *configv1alpha1.Configuration, logger logr.Logger) error {
	if err := errors.Join(metrics.Registry.Register(buildInfo(o.Version, o.Commit)), metrics.Registry.Register(checks)); err != nil {
		return errors.Wrap(err, "cannot register metrics")
	}
	if o.ConfigFile == "" {
		return nil
	}
	reload := &configReload{
		path: o.ConfigFile, running: running, exprs: running.HealthCheckExprs, logger: logger.WithName("configuration"), stop: o.stop, changed: checks.use,
	}
	if err := metrics.Registry.Register(reload); err != nil {
		return errors.Wrap(err, "cannot register metrics")
	}
	return errors.Wrap(mgr.Add(watchFiles([]string{reload.path}, reload.logger, reload.reload)), "cannot watch the configuration file")
}

// subscribers are callbacks, each registered until its subscription is cancelled. It is safe for concurrent use.
type subscribers[F any] struct {
	mu  sync.Mutex
	all map[*F]F
}

// add adds a subscriber until cancel is called.
func (s *subscribers[F]) add(f F) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*F]F{}
	}
	s.all[&f] = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, &f)
	}
}

// list returns the subscribers, in no order.
func (s *subscribers[F]) list() []F {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.all))
}
