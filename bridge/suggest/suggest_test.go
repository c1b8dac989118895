package suggest

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	names := []string{"create-issue", "create_pull", "list_issues", "get", "日本語"}
	tests := []struct{ name, want string }{
		{"create_issue", "create-issue"},
		{"createIssue", "create-issue"},
		{"craete_isseu", "create-issue"},
		{"issue", "create-issue list_issues"},
		{"gte", "get"},
		{"list_issue", "list_issues"},
		{"日本", "日本語"},
		{"is", ""},
		{"unrelated", ""},
		{"", ""},
		{"___", ""},
		{strings.Repeat("x", 1000), ""},
	}
	for _, tc := range tests {
		if got := strings.Join(Names(tc.name, names), " "); got != tc.want {
			t.Errorf("Names(%.20q) = %q, want %q", tc.name, got, tc.want)
		}
	}
}
