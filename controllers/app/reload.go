package app

import (
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/metric"
)

// metricRefused is the metric of a configuration file that cannot be used. It is computed at scrape time.
var metricRefused = metric.New(metric.Gauge, "healthscope_configuration_refused",
	"1 while the [configuration file](configuration.md) cannot be read or used, so that the configuration from before it was changed stays in use; else 0. Without a file there is no series. Monitor and controller have it, each replica.")

// configReload reloads a configuration file while the program runs. Health check expressions take effect immediately. When
// other settings change, the program exits, and its supervisor, such as the kubelet, restarts it. A file that cannot be used is
// logged, and changes nothing. configReload is the collector of metricRefused.
type configReload struct {
	// path is the configuration file.
	path string
	// running is the configuration that the program has started with.
	running *configv1alpha1.Configuration
	// exprs are the health check expressions in force, and changed is called with others.
	exprs   []configv1alpha1.HealthCheckExpr
	changed func([]configv1alpha1.HealthCheckExpr)
	// stop is called when other settings differ from those that the program has started with.
	stop   func()
	logger logr.Logger
	// refused is true while the file cannot be used.
	refused atomic.Bool
}

// reload reads the file and applies what has changed.
func (w *configReload) reload() {
	config, err := LoadConfig(w.path)
	w.refused.Store(err != nil)
	if err != nil {
		w.logger.Error(err, "The configuration file is refused; the configuration stays as it is")
		return
	}
	if settings := changedSettings(w.running, config); len(settings) > 0 {
		w.logger.Info("Settings have changed; exiting to be restarted with them", "file", w.path, "settings", settings)
		w.stop()
	}
	if !reflect.DeepEqual(config.HealthCheckExprs, w.exprs) {
		w.changed(config.HealthCheckExprs)
	}
	w.exprs = config.HealthCheckExprs
}

// Describe implements prometheus.Collector.
func (*configReload) Describe(out chan<- *prometheus.Desc) { out <- metricRefused.Desc }

// Collect implements prometheus.Collector.
func (w *configReload) Collect(out chan<- prometheus.Metric) {
	value := 0.0
	if w.refused.Load() {
		value = 1
	}
	out <- metricRefused.Value(value)
}

// changedSettings returns the names of the settings, other than health check expressions, in which two configurations differ.
func changedSettings(a, b *configv1alpha1.Configuration) []string {
	var names []string
	left, right := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range left.NumField() {
		name, _, _ := strings.Cut(left.Type().Field(i).Tag.Get("json"), ",")
		if name == "" || name == "healthCheckExprs" || reflect.DeepEqual(left.Field(i).Interface(), right.Field(i).Interface()) {
			continue
		}
		names = append(names, name)
	}
	return names
}
