package app

import (
	"encoding/json"
	"os"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// LoadConfig reads a configuration file, strictly, and fills in defaults. Without a path it returns the defaults.
func LoadConfig(path string) (*configv1alpha1.Configuration, error) {
	config := &configv1alpha1.Configuration{}
	if path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, errors.Wrap(err, "cannot read the configuration file")
		}
		config, err = ParseConfig(data)
		return config, errors.Wrapf(err, "cannot use configuration file %q", path)
	}
	configv1alpha1.SetDefaults(config)
	return config, nil
}

// ParseConfig decodes a configuration file, strictly, and fills in defaults.
func ParseConfig(data []byte) (*configv1alpha1.Configuration, error) {
	if n := countDocuments(data); n > 1 {
		return nil, errors.Errorf("it holds %d YAML documents; it must hold one", n)
	}
	config := &configv1alpha1.Configuration{}
	if err := yaml.UnmarshalStrict(data, config); err != nil {
		return nil, decodeError(err)
	}
	if config.APIVersion == "" || config.Kind == "" {
		return nil, errors.Errorf("apiVersion and kind must be %q and %q", configv1alpha1.APIVersion, configv1alpha1.Kind)
	}
	typeMeta := config.TypeMeta
	configv1alpha1.SetDefaults(config)
	config.TypeMeta = typeMeta
	return config, configv1alpha1.Validate(config).ToAggregate()
}

// countDocuments returns the number of YAML documents in a file that are not empty: the decoder would ignore all but the first.
func countDocuments(data []byte) int {
	n, inDocument := 0, false
	for line := range strings.Lines(string(data)) {
		marker, _, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		text := strings.TrimSpace(line)
		switch {
		case marker == "---":
			inDocument = false
		case !inDocument && text != "" && !strings.HasPrefix(text, "#"):
			inDocument = true
			n++
		}
	}
	return n
}

// decodeError turns an error of the decoder, which speaks of JSON and Go, into one that the author of the file understands.
func decodeError(err error) error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return errors.Errorf("%s is a %s; it must be a %s", wrongType.Field, wrongType.Value, wrongType.Type.Kind())
	}
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(cause) {
		err = cause
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// PolicyOf turns the policy of a configuration, defaults filled in, into the core's.
func PolicyOf(p configv1alpha1.Policy) healthscope.Policy {
	return healthscope.Policy{
		PendingTimeout:  seconds(p.PendingTimeoutSeconds),
		NotPresentGrace: seconds(p.NotPresentGraceSeconds),
		NoStatusGrace:   seconds(p.NoStatusGraceSeconds),
		FailureGrace:    seconds(p.FailureGraceSeconds),
		RecoveryHold:    seconds(p.RecoveryHoldSeconds),
	}
}

func seconds(n *int32) time.Duration {
	if n == nil {
		return 0
	}
	return time.Duration(*n) * time.Second
}
