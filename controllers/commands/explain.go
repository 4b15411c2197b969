package commands

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/healthscope/healthscope/controllers/app"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
	"github.com/healthscope/healthscope/healthscope/rules"
	"github.com/healthscope/healthscope/healthscope/rules/expr"
)

// explainLong is the help of the command explain.
const explainLong = `Judge objects from files, and print which rule decided and why.

The input is YAML or JSON: one object or many, a List as kubectl get prints it,
or directories of .yaml, .yml and .json files. No cluster is needed.

  kubectl get all -n store -o yaml | healthscope explain -f -
  kubectl get deploy,rs,pods -l app=web -o yaml | healthscope explain -f -
  healthscope explain deployment.yaml --config config.yaml -o json

Each object is judged by the rules for its kind and by those of healthCheckExprs
in the configuration. A workload is judged with its pods, as in a scope, if they
are in the input; those of a Deployment need its ReplicaSets too. There are no
time limits. As in a monitor, rules do not see the data of Secrets and ConfigMaps, nor
literal values of environment variables.

The exit code is 0 when all objects are Ready, 1 when some are not, and 2 when
the command line or a file that it names is invalid.`

// explanation is the result for one object, as it is printed in JSON.
type explanation struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	Namespace  string             `json:"namespace"`
	Name       string             `json:"name"`
	State      healthscope.State  `json:"state"`
	Reason     healthscope.Reason `json:"reason"`
	Message    string             `json:"message"`
	Serving    bool               `json:"serving"`
	Suspended  bool               `json:"suspended"`
	Warning    bool               `json:"warning"`
	Rule       string             `json:"rule"`
}

// explainOptions are the flags of the command explain, and the rules that follow from them.
type explainOptions struct {
	files  []string
	config string
	output string
	colour bool

	rules  rules.Options
	policy healthscope.Policy
}

func newExplain() *cobra.Command {
	var o explainOptions
	c := &cobra.Command{
		Use: "explain [-f] FILE...", Short: "Judge objects from files, and print which rule decided and why", Long: explainLong,
		RunE: func(c *cobra.Command, args []string) error {
			o.files = append(o.files, args...)
			o.colour = hasColor(c)
			return o.run(c.InOrStdin(), c.OutOrStdout())
		},
	}
	c.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "a file or directory with objects, or - for standard input; may be repeated. In a directory, only files that end in .yaml, .yml or .json are read, and no subdirectories")
	c.Flags().StringVar(&o.config, "config", "", "the configuration file with healthCheckExprs; without it, only the built-in rules apply")
	c.Flags().StringVarP(&o.output, "output", "o", formatTable, "the output format: table, json (one line per object) or yaml (one document per object)")
	return c
}

// run reads objects, judges them and prints the results. It also does so if some files cannot be read.
func (o *explainOptions) run(in io.Reader, out io.Writer) error {
	if problems := o.readRules(); len(problems) > 0 {
		for i := range problems {
			problems[i] = errors.Wrap(problems[i], "cannot explain")
		}
		return usageError(problems...)
	}
	objects, unreadable := readObjects(o.files, in)
	explanations := o.explain(objects, time.Now())
	if err := o.print(out, explanations); err != nil {
		return usageError(errors.Wrap(err, "cannot print the explanations"))
	}
	if len(unreadable) > 0 {
		return usageError(unreadable...)
	}
	if slices.ContainsFunc(explanations, func(e explanation) bool { return e.State != healthscope.Ready }) {
		return errNo
	}
	return nil
}

// readRules checks the flags and reads the rules and the policy. It returns what is wrong with them.
func (o *explainOptions) readRules() (problems []error) {
	if len(o.files) == 0 {
		return []error{errors.New("give a file, or - for standard input")}
	}
	if err := checkFormat(o.output, formatTable, formatJSON, formatYAML); err != nil {
		return []error{err}
	}
	config, err := app.LoadConfig(o.config)
	if err != nil {
		return []error{err}
	}
	o.policy.NoStatusGrace = app.PolicyOf(config.Policy).NoStatusGrace
	user, invalid := expr.Compile(config.HealthCheckExprs)
	for _, err := range invalid {
		problems = append(problems, errors.Wrapf(err, "cannot use configuration file %q", o.config))
	}
	o.rules.User = user
	return problems
}

// explain judges objects as a monitor would see them, each with those that it owns. An object that occurs twice, as before and after a
// change, is judged alone: which of the two owns the other objects is unknown.
func (o *explainOptions) explain(objects []any, now time.Time) []explanation {
	results, ruleNames := make([]healthscope.Result, len(objects)), make([]string, len(objects))
	occurrences := map[healthscope.Key]int{}
	for i, object := range objects {
		results[i], ruleNames[i] = o.evaluate(object)
		occurrences[results[i].Key]++
	}
	judged := map[healthscope.Key]healthscope.Result{}
	for _, m := range healthscope.Judge(results, o.policy, now).Members {
		judged[m.Key] = m.Result
	}
	explanations := make([]explanation, len(objects))
	for i := range results {
		r := judged[results[i].Key]
		if occurrences[r.Key] > 1 {
			r = healthscope.Judge(results[i:i+1], o.policy, now).Members[0].Result
		}
		explanations[i] = explanation{
			APIVersion: schema.GroupVersion{Group: r.Group, Version: r.Version}.String(), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name,
			State: r.State, Reason: r.Reason, Message: r.Message,
			Serving: r.Serving, Suspended: r.Suspended, Warning: r.Warning, Rule: ruleNames[i],
		}
	}
	return explanations
}

// evaluate returns the result of the rules for an object, and the name of the rule that decided. The state of a value that is not an object is Unknown.
func (o *explainOptions) evaluate(value any) (r healthscope.Result, rule string) {
	object, ok := value.(map[string]any)
	if !ok {
		return healthscope.Result{State: healthscope.Unknown, Reason: healthscope.ReasonInvalidObject, Message: fmt.Sprintf("it is %s; it must be an object", jsonType(value))}, "none"
	}
	u := &unstructured.Unstructured{Object: object}
	bundle.Redact(u)
	r, rule = rules.Explain(u, o.rules)
	r.ProgressDeadline = 0 // Nothing times out: a file may be older than its deadline.
	return r, rule
}

// print prints explanations as a table, as lines of JSON or as YAML documents.
func (o *explainOptions) print(out io.Writer, explanations []explanation) error {
	list := table{columns: []string{stateColumn, "OBJECT", "NAMESPACE", "REASON", "RULE", "MESSAGE"}}
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for i := range explanations {
		e := &explanations[i]
		var err error
		switch o.output {
		case formatTable:
			list.add(string(e.State), string(e.State), cmp.Or(e.Kind, "-")+"/"+cmp.Or(e.Name, "-"), e.Namespace, string(e.Reason), e.Rule, e.Message)
		case formatJSON:
			err = lines.Encode(e)
		default:
			if i > 0 {
				fmt.Fprintln(out, "---")
			}
			err = encode(out, formatYAML, e)
		}
		if err != nil {
			return err
		}
	}
	if len(list.rows) == 0 {
		return nil
	}
	return list.print(out, o.colour)
}
