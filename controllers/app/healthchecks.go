package app

import (
	"fmt"
	"maps"
	"reflect"
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

// Metrics of the configuration file, computed at scrape time.
var (
	metricRefused = metric.New(metric.Gauge, "healthscope_configuration_refused",
		"1 while the [configuration file](configuration.md) cannot be read or used, so that the configuration from before it was changed stays in use; else 0. Without a file there is no series. Monitor and controller have it, each replica.")
	metricRuleErrors = metric.New(metric.Gauge, "healthscope_health_rule_errors",
		"1 for each [rule of yours](rules.md) that cannot be used. The others have no series. Monitor and controller have it, each replica.", "rule")
)

// healthChecks holds the health check expressions in force, and reloads them from the configuration file while the program runs.
// When other settings change, the program exits, and its supervisor, such as the kubelet, restarts it. A file that cannot be used
// is logged, and changes nothing. healthChecks implements rules.UserRules, and is the collector of the metrics of the file.
type healthChecks struct {
	logger logr.Logger
	// running is the configuration that the program has started with.
	running *configv1alpha1.Configuration
	// file is the configuration file; empty if none is watched. stop ends the program when other settings change.
	file string
	stop func()

	compiled atomic.Pointer[compiledChecks]
	// refused is true while the file cannot be used.
	refused atomic.Bool
	changed subscribers[func()]
}

// compiledChecks are expressions and what is wrong with them.
type compiledChecks struct {
	exprs    []configv1alpha1.HealthCheckExpr
	set      *expr.Set
	problems []expr.RuleError
}

// newHealthChecks compiles the expressions of the configuration that the program starts with.
func newHealthChecks(config *configv1alpha1.Configuration, logger logr.Logger) *healthChecks {
	h := &healthChecks{logger: logger, running: config}
	h.use(config.HealthCheckExprs)
	return h
}

// use compiles expressions, puts those that compile in force and logs the others. Then it notifies the subscribers.
func (h *healthChecks) use(exprs []configv1alpha1.HealthCheckExpr) {
	set, problems := expr.Compile(exprs)
	h.compiled.Store(&compiledChecks{exprs, set, problems})
	for i := range problems {
		h.logger.Error(problems[i], "A health check is left out; the others count")
	}
	for _, changed := range h.changed.list() {
		changed()
	}
}

// reload reads the file and applies what has changed.
func (h *healthChecks) reload() {
	logger := h.logger.WithName("configuration")
	config, err := LoadConfig(h.file)
	h.refused.Store(err != nil)
	if err != nil {
		logger.Error(err, "The configuration file is refused; the configuration stays as it is")
		return
	}
	if settings := changedSettings(h.running, config); len(settings) > 0 {
		logger.Info("Settings have changed; exiting to be restarted with them", "file", h.file, "settings", settings)
		h.stop()
	}
	if !reflect.DeepEqual(config.HealthCheckExprs, h.compiled.Load().exprs) {
		h.use(config.HealthCheckExprs)
	}
}

// changedSettings returns the names of the settings, other than health check expressions, in which two configurations differ.
func changedSettings(a, b *configv1alpha1.Configuration) []string {
	var names []string
	left, right := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range left.NumField() {
		name, _, _ := strings.Cut(left.Type().Field(i).Tag.Get("json"), ",")
		if name != "" && name != "healthCheckExprs" && !reflect.DeepEqual(left.Field(i).Interface(), right.Field(i).Interface()) {
			names = append(names, name)
		}
	}
	return names
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
	return fmt.Sprintf("%d of %d health checks cannot be used: %s. The first: %v", len(names), len(c.exprs), strings.Join(names, ", "), c.problems[0])
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
func (*healthChecks) Describe(out chan<- *prometheus.Desc) {
	metric.Describe(out, metricRefused, metricRuleErrors)
}

// Collect implements prometheus.Collector.
func (h *healthChecks) Collect(out chan<- prometheus.Metric) {
	for _, name := range h.compiled.Load().invalidRules() {
		out <- metricRuleErrors.Value(1, name)
	}
	switch {
	case h.file == "":
	case h.refused.Load():
		out <- metricRefused.Value(1)
	default:
		out <- metricRefused.Value(0)
	}
}

// addHealthChecks adds to a manager a watch of the configuration file, and registers the metrics of the file and of the build.
func (o *Options) addHealthChecks(mgr ctrl.Manager, checks *healthChecks) error {
	checks.file, checks.stop = o.ConfigFile, o.stop
	if err := errors.Join(metrics.Registry.Register(buildInfo(o.Version, o.Commit)), metrics.Registry.Register(checks)); err != nil {
		return errors.Wrap(err, "cannot register metrics")
	}
	if checks.file == "" {
		return nil
	}
	return errors.Wrap(mgr.Add(checks.watch()), "cannot watch the configuration file")
}

// watch returns what reloads the file when it changes.
func (h *healthChecks) watch() everyReplica {
	return watchFiles([]string{h.file}, h.logger.WithName("configuration"), h.reload)
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
