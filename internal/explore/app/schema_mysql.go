package app

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/oversell/oversell/internal/testbed/localserver"
)

// definers matches the DEFINER of a view, trigger or routine: the account that it runs as. It matches
// only before any text in quotes.
var definers = regexp.MustCompile("(?im)^([^'\"\n]*?)\\bDEFINER\\s*=\\s*(?:`[^`\n]*`|'[^'\n]*')@(?:`[^`\n]*`|'[^'\n]*')")

const whichDatabase = "\nDELIMITER ;\nSELECT COALESCE(DATABASE(), '');\n"

var delimiters = regexp.MustCompile(`(?im)^[ \t]*DELIMITER[ \t]+(\S+)`)

// completed appends the current delimiter to a script, in case its last statement has none. The client
// ignores an extra delimiter.
func completed(text string) string {
	end := ";"
	for _, found := range delimiters.FindAllStringSubmatch(text, -1) {
		end = found[1]
	}
	return text + "\n" + end
}

// loadMySQL runs scripts, for example dumps of mysqldump, with the server's client. It returns the
// current database after the last script. The error contains the client's message.
func loadMySQL(ctx context.Context, server *localserver.MySQL, scripts []script) (database string, _ error) {
	database = "shop"
	for _, s := range scripts {
		client, err := server.Client(ctx, database)
		if err != nil {
			return "", fmt.Errorf("schema: %w", err)
		}
		// The account may not exist here.
		out, messages, err := s.run(client, completed(definers.ReplaceAllString(s.text, "$1"))+whichDatabase)
		if err != nil {
			if _, said, found := strings.Cut("\n"+messages, "\nERROR "); found { // the statement precedes the message
				messages = "ERROR " + said
			}
			return "", s.failed(client, err, messages)
		}
		database = lastLine(out)
	}
	return database, nil
}
