import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { directory } from "../stores/sqlite/directories.ts";

const folder = join(import.meta.dirname, "../../deploy/kubernetes");
const components = join(folder, "components");

/** Why the manifests cannot be built here; tests that only read the files run all the same. */
const withoutKubectl =
  spawnSync("kubectl", ["version", "--client"]).status === 0 ? false : "needs kubectl";

// biome-ignore lint/suspicious/noExplicitAny: whatever the files say
type Manifest = any;

const read = async (...path: string[]): Promise<Manifest> =>
  parse(await readFile(join(...path), "utf8"));

/** All manifests with these components, as `kubectl apply -k` would send them. */
async function build(t: TestContext, ...names: string[]): Promise<Manifest[]> {
  const copy = directory(t);
  await cp(folder, copy, { recursive: true });
  const path = join(copy, "kustomization.yaml");
  const kustomization = await readFile(path, "utf8");
  // Uncomment the lines of the components, and `components:` above them, as a user would.
  const wanted = ["components:", ...names.map((name) => `  - components/${name}`)];
  const lines = kustomization.split("\n").map((line) => {
    const bare = line.replace(/^# /, "");
    return names.length > 0 && wanted.includes(bare) ? bare : line;
  });
  await writeFile(path, lines.join("\n"));
  const built = spawnSync("kubectl", ["kustomize", copy], { encoding: "utf8" });
  assert.equal(built.status, 0, built.stderr);
  return parseAllDocuments(built.stdout).map((document) => document.toJS());
}

const find = (manifests: Manifest[], kind: string): Manifest =>
  manifests.find((manifest) => manifest.kind === kind) ?? assert.fail(kind);

describe("the components of the kustomization", () => {
  it("are all named in the kustomization, and use all of their files", async () => {
    const text = await readFile(join(folder, "kustomization.yaml"), "utf8");
    const named = [...text.matchAll(/^# {3}- components\/(.+)$/gm)].map(([, name]) => name);
    assert.deepEqual(named.sort(), (await readdir(components)).sort());
    for (const name of await readdir(components)) {
      const { kind, resources = [], patches } = await read(components, name, "kustomization.yaml");
      assert.equal(kind, "Component");
      const paths = patches.flatMap(({ path }: { path?: string }) => (path ? [path] : []));
      const files = (await readdir(join(components, name))).filter(
        (file) => file !== "kustomization.yaml",
      );
      assert.deepEqual([...resources, ...paths].sort(), files.sort());
    }
  });

  it("refer to the deployment, its container and its ports", async () => {
    const deployment = await read(folder, "deployment.yaml");
    const patch = await read(components, "rpc-tls", "deployment.yaml");
    const [container] = deployment.spec.template.spec.containers;
    const [patched] = patch.spec.template.spec.containers;
    assert.deepEqual([patched.name, patch.metadata.name], [container.name, "payments-gateway"]);
    const [mount] = patched.volumeMounts;
    for (const { value } of patched.env) assert.ok(value.startsWith(`${mount.mountPath}/tls.`));
    const scaler = await read(components, "autoscaling", "horizontal-pod-autoscaler.yaml");
    assert.deepEqual(scaler.spec.scaleTargetRef, {
      apiVersion: "apps/v1",
      kind: "Deployment",
      name: deployment.metadata.name,
    });
    // While the disruption budget lets one replica stop, a second one has to serve.
    assert.ok(scaler.spec.minReplicas >= 2);
    const { spec } = await read(components, "prometheus-operator", "pod-monitor.yaml");
    assert.deepEqual(spec.selector, deployment.spec.selector);
    const ports = container.ports.map(({ name }: { name: string }) => name);
    assert.ok(ports.includes(spec.podMetricsEndpoints[0].port));
  });
});

describe("kubectl kustomize", { skip: withoutKubectl }, () => {
  it("names the ConfigMap by its content, so that a change of the settings rolls the pods", async (t) => {
    const manifests = await build(t);
    const { metadata, data } = find(manifests, "ConfigMap");
    assert.match(metadata.name, /^payments-gateway-[a-z0-9]{10}$/);
    assert.equal(data.AUTH_MODE, "keys");
    const [container] = find(manifests, "Deployment").spec.template.spec.containers;
    assert.deepEqual(container.envFrom, [{ configMapRef: { name: metadata.name } }]);
  });

  it("builds with all components together", async (t) => {
    const manifests = await build(t, ...(await readdir(components)));
    const { spec } = find(manifests, "Deployment");
    assert.equal(spec.replicas, undefined);
    assert.equal(spec.template.metadata.annotations, undefined);
    const [container] = spec.template.spec.containers;
    const names = container.env.map(({ name }: { name: string }) => name);
    for (const name of ["UPSTREAM_PASSWORD_FILE", "TLS_CERT_FILE", "TLS_KEY_FILE"]) {
      assert.ok(names.includes(name), name);
    }
    assert.equal(container.volumeMounts.length, 2);
    const rpc = manifests.find(({ metadata }) => metadata.name === "payments-gateway-rpc");
    assert.equal(rpc.spec.ports[0].appProtocol, "https");
    assert.equal(rpc.spec.ports[0].targetPort, "rpc");
    find(manifests, "HorizontalPodAutoscaler");
    find(manifests, "PodMonitor");
  });
});
