package app

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/oversell/oversell/internal/testbed/localserver"
)

// definers matches the account whose rights a view, trigger or routine has, before any text in quotes.
var definers = regexp.MustCompile("(?im)^([^'\"\n]*?)\\bDEFINER\\s*=\\s*(?:`[^`\n]*`|'[^'\n]*')@(?:`[^`\n]*`|'[^'\n]*')")

// whichDatabase ends a script.
const whichDatabase = "\nDELIMITER ;\nSELECT COALESCE(DATABASE(), '');\n"

// delimiters matches the client's command for another end of the statements.
var delimiters = regexp.MustCompile(`(?im)^[ \t]*DELIMITER[ \t]+(\S+)`)

// completed returns a script with an end for its last statement. The client ignores an end without a statement.
func completed(text string) string {
	end := ";"
	for _, found := range delimiters.FindAllStringSubmatch(text, -1) {
		end = found[1]
	}
	return text + "\n" + end
}

// loadMySQL runs scripts, for example dumps of mysqldump, with the server's client. It returns the database
// in which they end. The error has what the client said.
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
			if _, said, found := strings.Cut("\n"+messages, "\nERROR "); found { // before it is the statement
				messages = "ERROR " + said
			}
			return "", s.failed(client, err, messages)
		}
		database = lastLine(out)
	}
	return database, nil
}
