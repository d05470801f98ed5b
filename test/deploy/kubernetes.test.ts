import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { parseEnv } from "node:util";
import { pino } from "pino";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { readConfig } from "../../src/config/config.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { directory } from "../stores/sqlite/directories.ts";
import { kinds } from "./manifest-kinds.ts";

const root = join(import.meta.dirname, "../..");
const folder = join(root, "deploy/kubernetes");

type Manifest = { apiVersion: string; kind: string } & Record<string, unknown>;

async function manifests(): Promise<Manifest[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".yaml"));
  const all: Manifest[] = [];
  for (const name of names.filter((name) => name !== "kustomization.yaml").sort()) {
    for (const document of parseAllDocuments(await readFile(join(folder, name), "utf8"))) {
      assert.deepEqual(document.errors, [], name);
      all.push(document.toJS() as Manifest);
    }
  }
  const scaler = join(folder, "components/autoscaling/horizontal-pod-autoscaler.yaml");
  all.push(parse(await readFile(scaler, "utf8")));
  return all;
}

/** Wrong values and unknown fields, with their paths; empty if the object is valid. */
function faultsOf(object: Manifest): string {
  const kind = kinds[`${object.apiVersion}/${object.kind}`];
  assert.ok(kind, `no kind ${object.apiVersion}/${object.kind}`);
  const { error } = kind.safeParse(object);
  return error ? z.prettifyError(error) : "";
}

const find = (objects: readonly Manifest[], kind: string, name = "payments-gateway") => {
  // biome-ignore lint/suspicious/noExplicitAny: checked against its type by the first test
  const found = objects.find((o) => o.kind === kind && (o as any).metadata.name === name) as any;
  assert.ok(found, `${kind} ${name}`);
  return found;
};

describe("the Kubernetes manifests", () => {
  it("are valid objects of their kinds, with no unknown field", async () => {
    for (const object of await manifests()) assert.equal(faultsOf(object), "");
  });

  it("are refused with a misspelt field, a wrong value or a missing one (control)", async () => {
    const misspelt = find(await manifests(), "Deployment");
    misspelt.spec.template.spec.containers[0].readynessProbe = {};
    assert.match(faultsOf(misspelt), /readynessProbe/);
    const wrong = find(await manifests(), "Deployment");
    wrong.spec.replicas = "2";
    assert.match(faultsOf(wrong), /spec\.replicas/);
    const missing = find(await manifests(), "Deployment");
    delete missing.spec.selector;
    assert.match(faultsOf(missing), /spec\.selector/);
  });

  it("are all in the kustomization", async () => {
    const { resources } = parse(await readFile(join(folder, "kustomization.yaml"), "utf8"));
    const files = (await readdir(folder)).filter((name) => name.endsWith(".yaml"));
    const others = files.filter((name) => name !== "kustomization.yaml");
    assert.deepEqual(resources.toSorted(), others.sort());
  });

  it("select the pods that the deployment makes", async () => {
    const objects = await manifests();
    const { spec } = find(objects, "Deployment");
    const labels = spec.template.metadata.labels;
    assert.deepEqual(spec.selector.matchLabels, labels);
    assert.deepEqual(find(objects, "Service").spec.selector, labels);
    assert.deepEqual(find(objects, "Service", "payments-gateway-rpc").spec.selector, labels);
    assert.deepEqual(find(objects, "PodDisruptionBudget").spec.selector.matchLabels, labels);
    assert.deepEqual(find(objects, "NetworkPolicy").spec.podSelector.matchLabels, labels);
    for (const spread of spec.template.spec.topologySpreadConstraints) {
      assert.deepEqual(spread.labelSelector.matchLabels, labels);
    }
  });

  it("name ports that the container has", async () => {
    const objects = await manifests();
    const [container] = find(objects, "Deployment").spec.template.spec.containers;
    const ports = new Set(container.ports.map((port: { name: string }) => port.name));
    const named = [
      ...["payments-gateway", "payments-gateway-rpc"].flatMap((name) =>
        find(objects, "Service", name).spec.ports.map(
          (port: { targetPort: string }) => port.targetPort,
        ),
      ),
      ...find(objects, "NetworkPolicy").spec.ingress.map(
        (rule: { ports: { port: string }[] }) => rule.ports[0]?.port,
      ),
      ...["startupProbe", "livenessProbe", "readinessProbe"].map(
        (probe) => container[probe].httpGet.port,
      ),
    ];
    for (const name of named) assert.ok(ports.has(name), name);
  });

  it("give an environment that the gateway accepts, and time enough to drain", async (t) => {
    const objects = await manifests();
    const pod = find(objects, "Deployment").spec.template.spec;
    const [container] = pod.containers;
    const mounted = directory(t);
    const secrets: Record<string, string> = {
      "upstream-password": "a password",
      "redis-url": "rediss://redis.example.com:6379",
      "watch-token-secret": "0123456789abcdef0123456789abcdef",
      "api-keys.json": "[]",
    };
    for (const [name, text] of Object.entries(secrets)) {
      await writeFile(join(mounted, name), text);
    }
    const [mount] = container.volumeMounts;
    const files = Object.fromEntries(
      container.env.map(({ name, value }: { name: string; value: string }) => {
        assert.ok(Object.hasOwn(secrets, value.replace(`${mount.mountPath}/`, "")), value);
        return [name, value.replace(mount.mountPath, mounted)];
      }),
    );
    const config = readConfig({
      ...(await imageEnvironment()),
      ...(await settings()),
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

  it("let the gateway reach the payments service, Redis and a collector of traces", async () => {
    const { egress } = find(await manifests(), "NetworkPolicy").spec;
    const ports = egress.flatMap((rule: { ports: { port: number }[] }) =>
      rule.ports.map(({ port }) => port),
    );
    for (const port of [53, 443, 6379, 4318]) assert.ok(ports.includes(port), String(port));
  });

  it("scale by CPU and by watchers, so that other zones can take the watchers of a lost one", async () => {
    const objects = await manifests();
    const { metrics } = find(objects, "HorizontalPodAutoscaler").spec;
    const of = (type: string) => metrics.find((metric: { type: string }) => metric.type === type);
    assert.equal(of("Resource").resource.name, "cpu");
    const { metric, target } = of("Pods").pods;
    const { registry } = createTelemetry(pino({ level: "silent" }), []).metrics;
    assert.ok(registry.getSingleMetric(metric.name), `${metric.name} is no metric of the gateway`);
    const zones = 3;
    const { MAX_CONNECTIONS } = await settings();
    const { maxConnections = Number.POSITIVE_INFINITY } = readConfig({ MAX_CONNECTIONS });
    assert.ok(Number(target.averageValue) * (zones / (zones - 1)) <= maxConnections);
    // A replica takes as many watchers as connections; see docs/operations.md.
    const [container] = find(objects, "Deployment").spec.template.spec.containers;
    const limitMiB = mebibytes(container.resources.limits.memory);
    assert.ok(processMiB + (maxConnections * watcherKiB) / 1_024 <= limitMiB, `${limitMiB} MiB`);
  });

  it("run without privileges on a read-only file system", async () => {
    const pod = find(await manifests(), "Deployment").spec.template.spec;
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
async function settings(): Promise<NodeJS.Dict<string>> {
  return parseEnv(await readFile(join(folder, "config.env"), "utf8"));
}

/** The environment that the image sets. */
async function imageEnvironment(): Promise<Record<string, string>> {
  const dockerfile = await readFile(join(root, "Dockerfile"), "utf8");
  const [, block = ""] = /^ENV ((?:.*\\\n)*.*)$/m.exec(dockerfile) ?? [];
  return Object.fromEntries(
    block
      .split(/\s*\\\n\s*|\s+/)
      .map((pair) => pair.split("=", 2) as [string, string])
      .filter(([name]) => name !== ""),
  );
}
