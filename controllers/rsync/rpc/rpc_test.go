package rpc_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/healthscope/healthscope/controllers/rsync/rpc"
)

// emcos are the methods of EMCO's files, by service: request and response with the types, names and numbers of their fields.
var emcos = map[string][]string{
	"installapp": {
		"InstallApp InstallAppRequest(string app_context=1) InstallAppResponse(bool app_context_installed=1; string app_context_install_message=2)",
		"UninstallApp UninstallAppRequest(string app_context=1) UninstallAppResponse(bool app_context_uninstalled=1; string app_context_uninstall_message=2)",
		"ReadAppContext ReadAppContextRequest(string app_context=1) ReadAppContextResponse(bool app_context_read_successful=1; string app_context_read_message=2)",
	},
	"updateapp": {
		"UpdateApp UpdateAppRequest(string update_from_appContext=1; string update_to_appContext=2) UpdateAppResponse(bool app_context_updated=1; string app_context_update_message=2)",
		"RollbackApp RollbackAppRequest(string rollback_from_appContext=1; string rollback_to_appContext=2) RollbackAppResponse(bool app_context_rolledback=1; string app_context_rollback_message=2)",
	},
	"readyNotify": {
		"Alert Topic(string clientName=1; string appContext=2) stream Notification(string clientName=1; string serverName=2; string appContext=3; string app=4; string cluster=5)",
		"Unsubscribe Topic(string clientName=1; string appContext=2) UnsubscribeResponse()",
	},
}

// TestWireIsEMCOs compares our files with EMCO's: paths of methods, numbers, types and names of fields.
func TestWireIsEMCOs(t *testing.T) {
	got := map[string][]string{}
	for _, f := range []protoreflect.FileDescriptor{rpc.File_installapp_proto, rpc.File_updateapp_proto, rpc.File_readynotify_proto} {
		for s := range f.Services().Len() {
			service := f.Services().Get(s)
			for m := range service.Methods().Len() {
				got[string(service.FullName())] = append(got[string(service.FullName())], signature(service.Methods().Get(m)))
			}
		}
	}
	if diff := cmp.Diff(emcos, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func signature(m protoreflect.MethodDescriptor) string {
	stream := ""
	if m.IsStreamingServer() {
		stream = "stream "
	}
	return fmt.Sprintf("%s %s %s%s", m.Name(), message(m.Input()), stream, message(m.Output()))
}

func message(m protoreflect.MessageDescriptor) string {
	var all []string
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		all = append(all, fmt.Sprintf("%s %s=%d", f.Kind(), f.Name(), f.Number()))
	}
	return fmt.Sprintf("%s(%s)", m.FullName(), strings.Join(all, "; "))
}
