package report

// replace returns errNoReplacing: Windows has no atomic rename over an existing file (documentation of
// github.com/google/renameio).
func replace(string, []byte) error { return errNoReplacing }
