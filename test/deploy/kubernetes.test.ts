import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { parseEnv } from "node:util";
import { parse, parseAllDocuments } from "yaml";
import { readConfig } from "../../src/config/config.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { directory } from "../stores/sqlite/directories.ts";

const root = join(import.meta.dirname, "../..");
const folder = join(root, "deploy/kubernetes");

type Manifest = { apiVersion: string; kind: string } & Record<string, unknown>;

/** The files of the folder, but for the kustomization. */
const names = readdirSync(folder)
  .filter((name) => name.endsWith(".yaml") && name !== "kustomization.yaml")
  .sort();
const scaler = "components/autoscaling/horizontal-pod-autoscaler.yaml";
const objects = [...names, scaler].flatMap((name) =>
  parseAllDocuments(readFileSync(join(folder, name), "utf8")).map((document) => {
    assert.deepEqual(document.errors, [], name);
    return document.toJS() as Manifest;
  }),
);

const find = (kind: string, name = "payments-gateway") => {
  // biome-ignore lint/suspicious/noExplicitAny: whatever the files say
  const found = objects.find((o) => o.kind === kind && (o as any).metadata.name === name) as any;
  assert.ok(found, `${kind} ${name}`);
  return found;
};

describe("the Kubernetes manifests", () => {
  it("are all in the kustomization", () => {
    const { resources } = parse(readFileSync(join(folder, "kustomization.yaml"), "utf8"));
    assert.deepEqual(resources.toSorted(), names);
  });

  it("select the pods that the deployment makes", () => {
    const { spec } = find("Deployment");
    const labels = spec.template.metadata.labels;
    assert.deepEqual(spec.selector.matchLabels, labels);
    assert.deepEqual(find("Service").spec.selector, labels);
    assert.deepEqual(find("Service", "payments-gateway-rpc").spec.selector, labels);
    assert.deepEqual(find("PodDisruptionBudget").spec.selector.matchLabels, labels);
    assert.deepEqual(find("NetworkPolicy").spec.podSelector.matchLabels, labels);
    for (const spread of spec.template.spec.topologySpreadConstraints) {
      assert.deepEqual(spread.labelSelector.matchLabels, labels);
    }
  });

  it("name ports that the container has", () => {
    const [container] = find("Deployment").spec.template.spec.containers;
    const ports = new Set(container.ports.map((port: { name: string }) => port.name));
    const named = [
      ...["payments-gateway", "payments-gateway-rpc"].flatMap((name) =>
        find("Service", name).spec.ports.map((port: { targetPort: string }) => port.targetPort),
      ),
      ...find("NetworkPolicy").spec.ingress.map(
        (rule: { ports: { port: string }[] }) => rule.ports[0]?.port,
      ),
      ...["startupProbe", "livenessProbe", "readinessProbe"].map(
        (probe) => container[probe].httpGet.port,
      ),
    ];
    for (const name of named) assert.ok(ports.has(name), name);
  });

  it("give an environment that the gateway accepts, and time enough to drain", (t) => {
    const pod = find("Deployment").spec.template.spec;
    const [container] = pod.containers;
    const mounted = directory(t);
    const secrets: Record<string, string> = {
      "upstream-password": "a password",
      "redis-url": "rediss://redis.example.com:6379",
      "watch-token-secret": "0123456789abcdef0123456789abcdef",
      "api-keys.json": "[]",
    };
    for (const [name, text] of Object.entries(secrets)) {
      writeFileSync(join(mounted, name), text);
    }
    const [mount] = container.volumeMounts;
    const files = Object.fromEntries(
      container.env.map(({ name, value }: { name: string; value: string }) => {
        assert.ok(Object.hasOwn(secrets, value.replace(`${mount.mountPath}/`, "")), value);
        return [name, value.replace(mount.mountPath, mounted)];
      }),
    );
    const config = readConfig({
      ...imageEnvironment(),
      ...settings(),
      ...files,
    });
    assert.deepEqual([...config.auth.modes], ["keys"]);
    assert.equal(config.redis?.url.reveal(), secrets["redis-url"]);
    const ports = container.ports.map((port: { containerPort: number }) => port.containerPort);
    const { publicAddress, rpcAddress, adminAddress } = config;
    assert.deepEqual(ports, [publicAddress.port, rpcAddress.port, adminAddress.port]);
    assert.ok(config.shutdown.delayMs > 0, "endpoints take a while to forget a pod");
    const graceMs = pod.terminationGracePeriodSeconds * 1_000;
    assert.ok(graceMs > config.shutdown.timeoutMs);
  });

  it("let the gateway reach the payments service, Redis and a collector of traces", () => {
    const { egress } = find("NetworkPolicy").spec;
    const ports = egress.flatMap((rule: { ports: { port: number }[] }) =>
      rule.ports.map(({ port }) => port),
    );
    for (const port of [53, 443, 6379, 26379, 4318]) assert.ok(ports.includes(port), String(port));
  });

  it("scale by CPU and by watchers, so that other zones can take the watchers of a lost one", async () => {
    const { metrics } = find("HorizontalPodAutoscaler").spec;
    const of = (type: string) => metrics.find((metric: { type: string }) => metric.type === type);
    assert.equal(of("Resource").resource.name, "cpu");
    const { metric, target } = of("Pods").pods;
    const { registry } = (await createTelemetry(createLogger("silent"), [])).metrics;
    assert.ok(registry.getSingleMetric(metric.name), `${metric.name} is no metric of the gateway`);
    const zones = 3;
    const { MAX_CONNECTIONS } = settings();
    const { maxConnections = Number.POSITIVE_INFINITY } = readConfig({ MAX_CONNECTIONS });
    assert.ok(Number(target.averageValue) * (zones / (zones - 1)) <= maxConnections);
    // A replica takes as many watchers as connections; see docs/operations.md.
    const [container] = find("Deployment").spec.template.spec.containers;
    const limitMiB = mebibytes(container.resources.limits.memory);
    assert.ok(processMiB + (maxConnections * watcherKiB) / 1_024 <= limitMiB, `${limitMiB} MiB`);
  });

  it("run without privileges on a read-only file system", () => {
    const pod = find("Deployment").spec.template.spec;
    assert.equal(pod.securityContext.runAsNonRoot, true);
    assert.equal(pod.automountServiceAccountToken, false);
    const { securityContext } = pod.containers[0];
    assert.equal(securityContext.readOnlyRootFilesystem, true);
    assert.equal(securityContext.allowPrivilegeEscalation, false);
    assert.deepEqual(securityContext.capabilities.drop, ["ALL"]);
  });
});

/** Memory of a replica without watchers, and the most that one watcher takes. */
const processMiB = 350;
const watcherKiB = 64;

function mebibytes(quantity: string): number {
  const [, number, unit = ""] = /^(\d+)(Mi|Gi)$/.exec(quantity) ?? [];
  return Number(number) * (unit === "Gi" ? 1_024 : 1);
}

/** The settings from which the ConfigMap is generated. */
function settings(): NodeJS.Dict<string> {
  return parseEnv(readFileSync(join(folder, "config.env"), "utf8"));
}

/** The environment that the image sets. */
function imageEnvironment(): Record<string, string> {
  const dockerfile = readFileSync(join(root, "Dockerfile"), "utf8");
  const [, block = ""] = /^ENV ((?:.*\\\n)*.*)$/m.exec(dockerfile) ?? [];
  return Object.fromEntries(
    block
      .split(/\s*\\\n\s*|\s+/)
      .map((pair) => pair.split("=", 2) as [string, string])
      .filter(([name]) => name !== ""),
  );
}
