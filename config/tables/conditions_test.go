package main

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/healthscope/healthscope/controllers/scope"
)

// TestEveryReasonOfAConditionHasAText asserts that each reason has a text, and that there is no other text.
func TestEveryReasonOfAConditionHasAText(t *testing.T) {
	for condition, reasons := range scope.Conditions {
		if len(reasons) != len(conditionTexts[condition]) {
			t.Errorf("condition %s has %d reasons and %d texts", condition, len(reasons), len(conditionTexts[condition]))
		}
		for _, r := range reasons {
			text := conditionTexts[condition][r.Reason]
			well := r.Status == metav1.ConditionTrue && text.advice == "Nothing."
			if text.meaning == "" || text.advice == "" || (text.diagnosis == "" || text.mitigation == "") && !well {
				t.Errorf("%s of %s: say what it means, what to do about it, and where to look", r.Reason, condition)
			}
		}
	}
	if len(conditionTexts) != len(scope.Conditions) {
		t.Errorf("texts for %d conditions, want %d", len(conditionTexts), len(scope.Conditions))
	}
}

func TestEveryEventHasAText(t *testing.T) {
	for health := range scope.Events {
		if eventTexts[health] == "" {
			t.Errorf("say when the event for health %s is made", health)
		}
	}
	if len(eventTexts) != len(scope.Events) {
		t.Errorf("texts for %d events, want %d", len(eventTexts), len(scope.Events))
	}
}
