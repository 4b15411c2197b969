package rpc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/healthscope/healthscope/controllers/rsync/rpc"
)

// TestWireIsEMCOs compares what goes over the wire with EMCO's services: paths of methods, numbers, types and names of fields.
func TestWireIsEMCOs(t *testing.T) {
	want := []string{
		"/installapp/InstallApp(string app_context=1) (bool app_context_installed=1; string app_context_install_message=2)",
		"/installapp/UninstallApp(string app_context=1) (bool app_context_uninstalled=1; string app_context_uninstall_message=2)",
		"/installapp/ReadAppContext(string app_context=1) (bool app_context_read_successful=1; string app_context_read_message=2)",
		"/updateapp/UpdateApp(string update_from_appContext=1; string update_to_appContext=2) (bool app_context_updated=1; string app_context_update_message=2)",
		"/updateapp/RollbackApp(string rollback_from_appContext=1; string rollback_to_appContext=2) (bool app_context_rolledback=1; string app_context_rollback_message=2)",
		"/readyNotify/Alert(string clientName=1; string appContext=2) stream (string clientName=1; string serverName=2; string appContext=3; string app=4; string cluster=5)",
		"/readyNotify/Unsubscribe(string clientName=1; string appContext=2) ()",
	}
	var got []string
	for _, f := range []protoreflect.FileDescriptor{rpc.File_installapp_proto, rpc.File_updateapp_proto, rpc.File_readynotify_proto} {
		for s := range f.Services().Len() {
			service := f.Services().Get(s)
			for m := range service.Methods().Len() {
				got = append(got, signature(service.Methods().Get(m)))
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func signature(m protoreflect.MethodDescriptor) string {
	stream := ""
	if m.IsStreamingServer() {
		stream = "stream "
	}
	return fmt.Sprintf("/%s/%s(%s) %s(%s)", m.Parent().FullName(), m.Name(), fields(m.Input()), stream, fields(m.Output()))
}

func fields(m protoreflect.MessageDescriptor) string {
	var all []string
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		all = append(all, fmt.Sprintf("%s %s=%d", f.Kind(), f.Name(), f.Number()))
	}
	return strings.Join(all, "; ")
}
