package system

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// mostComment is GitHub's limit on a comment, in characters. The code counts bytes, and a text never has fewer
// of them.
const mostComment = 65_536

const commentTimeout = 20 * time.Second

var errNoPermission = errors.New("no comment: the token may not write one (permissions: pull-requests: write; a fork's token never may); the step's summary has the result")

// comment creates the comment at the pull request, or updates the comment of an earlier run. Without a pull
// request or a token, it does nothing.
func comment(ctx context.Context, p Publication) error {
	g, err := pullRequest(p.Env)
	if g == nil || err != nil || ctx.Err() != nil { // an interrupted job has no time for a comment
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commentTimeout)
	defer cancel()
	// The marker contains the folder, since a job may run shop ci several times, and all jobs of a matrix have
	// the same name.
	marker := fmt.Sprintf("<!-- shop ci: %s/%s %s %s -->", p.Env("GITHUB_WORKFLOW"), p.Env("GITHUB_JOB"), p.Folder, p.Result.Shard)
	const note = "\nThe rest is left out: GitHub limits a comment to 65,536 characters. The step's summary has it.\n"
	body := marker + "\n" + cut(p.Summary, mostComment-len(marker)-1, note)
	id, err := g.find(ctx, marker)
	if err != nil {
		return err
	}
	if id != 0 {
		return g.call(ctx, http.MethodPatch, fmt.Sprintf("/repos/%s/issues/comments/%d", g.repository, id), map[string]string{"body": body}, nil)
	}
	return g.call(ctx, http.MethodPost, g.comments(), map[string]string{"body": body}, nil)
}

// A gitHubAPI is the part of GitHub's REST API for the comments of one pull request.
type gitHubAPI struct {
	url, token, repository string
	number                 int
}

// pullRequest returns the pull request of the run. It returns nil if there is none, or no token.
func pullRequest(env Env) (*gitHubAPI, error) {
	g := &gitHubAPI{url: strings.TrimSuffix(env("GITHUB_API_URL"), "/"), token: env("GITHUB_TOKEN"), repository: env("GITHUB_REPOSITORY")}
	if g.url == "" {
		g.url = "https://api.github.com"
	}
	path := env("GITHUB_EVENT_PATH")
	if g.token == "" || g.repository == "" || path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("no comment: %w", err)
	}
	var event struct {
		PullRequest *struct{ Number int } `json:"pull_request"`
	}
	if err := json.Unmarshal(text, &event); err != nil {
		return nil, fmt.Errorf("no comment: %s is not a JSON event", path)
	}
	if event.PullRequest == nil || event.PullRequest.Number == 0 {
		return nil, nil
	}
	g.number = event.PullRequest.Number
	return g, nil
}

func (g *gitHubAPI) comments() string {
	return fmt.Sprintf("/repos/%s/issues/%d/comments", g.repository, g.number)
}

// find returns the id of the comment that begins with the marker, or 0.
func (g *gitHubAPI) find(ctx context.Context, marker string) (int64, error) {
	const perPage = 100
	for page := 1; ; page++ {
		var comments []struct {
			ID   int64
			Body string
		}
		if err := g.call(ctx, http.MethodGet, fmt.Sprintf("%s?per_page=%d&page=%d", g.comments(), perPage, page), nil, &comments); err != nil {
			return 0, err
		}
		for _, c := range comments {
			if strings.HasPrefix(c.Body, marker) {
				return c.ID, nil
			}
		}
		if len(comments) < perPage {
			return 0, nil
		}
	}
}

// call sends one request and decodes the answer into `answer`, which may be nil.
func (g *gitHubAPI) call(ctx context.Context, method, path string, body, answer any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, g.url+path, sent)
	if err != nil {
		return fmt.Errorf("no comment: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+g.token)
	r.Header.Set("Accept", "application/vnd.github+json")
	r.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("no comment: %w", err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusUnauthorized:
		return errNoPermission
	case response.StatusCode >= 300:
		return fmt.Errorf("no comment: %s %s is answered %s", method, path, response.Status)
	case answer == nil:
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
