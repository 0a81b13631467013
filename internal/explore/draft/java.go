package draft

import (
	"encoding/xml"
	"regexp"
	"slices"
	"strings"
)

var java = ecosystem{manifests: []string{"pom.xml", "build.gradle", "build.gradle.kts"}, sources: ".java", read: readJava}

var (
	gradleDependency = regexp.MustCompile(`["'][\w.-]+:([\w.-]+)(?::[^"']*)?["']`)
	gradleSpring     = regexp.MustCompile(`org\.springframework\.boot`)
	springURL        = regexp.MustCompile(`(?m)^\s*(?:spring\.datasource\.)?url\s*[=:]\s*(?:\$\{(\w+):)?(jdbc:\w+)`)
)

func readJava(r *repository, d *Draft) {
	var pom struct {
		Artifact     string   `xml:"artifactId"`
		Parent       string   `xml:"parent>artifactId"`
		Dependencies []string `xml:"dependencies>dependency>artifactId"`
	}
	spring := false
	switch manifest := r.first("pom.xml", "build.gradle", "build.gradle.kts"); {
	case manifest == "pom.xml":
		_ = xml.Unmarshal([]byte(r.text(manifest)), &pom) // from an invalid file, the draft takes nothing
		d.name(pom.Artifact)
		d.dependsOn(manifest, pom.Dependencies)
		if slices.Contains(pom.Dependencies, "spring-boot-starter-actuator") {
			d.Ready.guess("/actuator/health", "pom.xml depends on spring-boot-starter-actuator")
		}
		spring = slices.ContainsFunc(append(pom.Dependencies, pom.Parent), func(name string) bool { return strings.HasPrefix(name, "spring-boot-") })
		if spring {
			d.Run.guess(tool(r, "mvnw", "mvn")+" -q spring-boot:run", "pom.xml depends on Spring Boot")
		}
	case manifest != "":
		text := r.text(manifest)
		d.dependsOn(manifest, groups(gradleDependency, text))
		if spring = gradleSpring.MatchString(text); spring {
			d.Run.guess(tool(r, "gradlew", "gradle")+" -q bootRun", "%s has org.springframework.boot", manifest)
		}
	}
	d.Slow = true
	if spring {
		readSpring(r, d)
	}
	if files := r.match("*.java"); len(files) == 1 {
		d.Run.guess("java "+files[0], "%s is the only Java file at the top", files[0])
	}
}

// readSpring sets the address of the private database in the variables that Spring maps to its
// properties.
func readSpring(r *repository, d *Draft) {
	d.asked = append(d.asked, "SPRING_DATASOURCE_URL", "SPRING_DATASOURCE_USERNAME", "SPRING_DATASOURCE_PASSWORD")
	d.urls[mysql], d.urls[postgres] = "jdbc:mysql://127.0.0.1:3306/shop", "jdbc:postgresql://127.0.0.1:5432/shop"
	if file, m := r.search(r.match("**/application.properties", "**/application.yml", "**/application.yaml"), springURL); m != nil {
		d.uses(ofScheme(m[2]), strong, "%s has %s", file, m[2])
	}
	for _, profile := range []string{"mysql", "postgresql", "postgres"} {
		if file := r.first("src/main/resources/application-"+profile+".properties", "src/main/resources/application-"+profile+".yml"); file != "" {
			k := ofWord(profile)
			d.uses(k, fair, "%s exists", file)
			d.profiles[k] = profile
		}
	}
}

// tool returns the wrapper of a build tool in the repository, or the tool's own name.
func tool(r *repository, wrapper, name string) string {
	if r.has(wrapper) {
		return "./" + wrapper
	}
	return name
}
