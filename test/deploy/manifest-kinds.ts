import { posix } from "node:path";
import { z } from "zod";

/**
 * The part of Kubernetes' API that the manifests use, field by field, as
 * https://kubernetes.io/docs/reference/kubernetes-api/ documents it. A field that is not here is
 * either misspelt in a manifest, or must be added here with its type.
 */

const object = z.strictObject;
const count = z.int().nonnegative();
const portNumber = z.int().min(1).max(65_535);
const dnsLabel = z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
const portName = z.string().regex(/^(?=.*[a-z])[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$/);
const quantity = z.string().regex(/^\d+(\.\d+)?(m|k|M|G|Ki|Mi|Gi)?$/);
const labelKey = z
  .string()
  .regex(/^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/);
const labels = z.record(labelKey, z.string().regex(/^([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?$/));
const metadata = object({ name: dnsLabel, labels });
const labelSelector = object({ matchLabels: labels });

const probe = object({
  httpGet: object({ path: z.string().startsWith("/"), port: z.union([portName, portNumber]) }),
  periodSeconds: count.min(1).optional(),
  timeoutSeconds: count.min(1).optional(),
  failureThreshold: count.min(1).optional(),
});

const container = object({
  name: dnsLabel,
  image: z.string().min(1),
  imagePullPolicy: z.enum(["Always", "IfNotPresent", "Never"]),
  envFrom: z.array(object({ configMapRef: object({ name: dnsLabel }) })),
  env: z.array(object({ name: z.string().regex(/^[A-Z][A-Z0-9_]*$/), value: z.string() })),
  ports: z.array(object({ name: portName, containerPort: portNumber })),
  startupProbe: probe,
  livenessProbe: probe,
  readinessProbe: probe,
  resources: object({
    requests: object({ cpu: quantity, memory: quantity }),
    limits: object({ cpu: quantity.optional(), memory: quantity }),
  }),
  securityContext: object({
    allowPrivilegeEscalation: z.boolean(),
    readOnlyRootFilesystem: z.boolean(),
    capabilities: object({ drop: z.array(z.string()) }),
  }),
  volumeMounts: z.array(
    object({ name: dnsLabel, mountPath: z.string().startsWith("/"), readOnly: z.boolean() }),
  ),
});

const podSpec = object({
  serviceAccountName: dnsLabel,
  automountServiceAccountToken: z.boolean(),
  enableServiceLinks: z.boolean(),
  terminationGracePeriodSeconds: count,
  securityContext: object({
    runAsNonRoot: z.boolean(),
    runAsUser: count,
    runAsGroup: count,
    fsGroup: count,
    seccompProfile: object({ type: z.enum(["RuntimeDefault", "Localhost", "Unconfined"]) }),
  }),
  topologySpreadConstraints: z.array(
    object({
      maxSkew: count.min(1),
      topologyKey: labelKey,
      whenUnsatisfiable: z.enum(["DoNotSchedule", "ScheduleAnyway"]),
      labelSelector,
    }),
  ),
  containers: z.array(container).min(1),
  volumes: z.array(
    object({
      name: dnsLabel,
      secret: object({ secretName: dnsLabel, defaultMode: count.max(0o777) }),
    }),
  ),
});

const podOrPercent = z.union([count, z.string().regex(/^\d+%$/)]);
const peer = object({
  namespaceSelector: labelSelector.optional(),
  podSelector: labelSelector.optional(),
});
const allowedPort = object({
  port: z.union([portNumber, portName]),
  protocol: z.enum(["TCP", "UDP", "SCTP"]).optional(),
});

const resourceMetric = object({
  type: z.literal("Resource"),
  resource: object({
    name: z.enum(["cpu", "memory"]),
    target: object({ type: z.literal("Utilization"), averageUtilization: count.min(1) }),
  }),
});
const podsMetric = object({
  type: z.literal("Pods"),
  pods: object({
    metric: object({ name: z.string() }),
    target: object({ type: z.literal("AverageValue"), averageValue: quantity }),
  }),
});

/** The fields of each kind besides those that all have, by `apiVersion/kind`. */
const fieldsOfKinds: Readonly<Record<string, z.ZodRawShape>> = {
  "apps/v1/Deployment": {
    spec: object({
      replicas: count,
      selector: labelSelector,
      strategy: object({
        rollingUpdate: object({ maxUnavailable: podOrPercent, maxSurge: podOrPercent }),
      }),
      template: object({
        metadata: object({ labels, annotations: z.record(labelKey, z.string()) }),
        spec: podSpec,
      }),
    }),
  },
  "v1/ServiceAccount": { automountServiceAccountToken: z.boolean() },
  "v1/Service": {
    spec: object({
      clusterIP: z.literal("None").optional(),
      selector: labels,
      ports: z.array(
        object({
          name: portName,
          port: portNumber,
          targetPort: z.union([portName, portNumber]),
          appProtocol: z.string(),
        }),
      ),
    }),
  },
  "policy/v1/PodDisruptionBudget": {
    spec: object({
      maxUnavailable: podOrPercent,
      unhealthyPodEvictionPolicy: z.enum(["IfHealthyBudget", "AlwaysAllow"]),
      selector: labelSelector,
    }),
  },
  "networking.k8s.io/v1/NetworkPolicy": {
    spec: object({
      podSelector: labelSelector,
      policyTypes: z.array(z.enum(["Ingress", "Egress"])),
      ingress: z.array(object({ from: z.array(peer).optional(), ports: z.array(allowedPort) })),
      egress: z.array(object({ to: z.array(peer).optional(), ports: z.array(allowedPort) })),
    }),
  },
  "autoscaling/v2/HorizontalPodAutoscaler": {
    spec: object({
      scaleTargetRef: object({ apiVersion: z.string(), kind: z.string(), name: dnsLabel }),
      minReplicas: count.min(1),
      maxReplicas: count.min(1),
      metrics: z.array(z.discriminatedUnion("type", [resourceMetric, podsMetric])),
      behavior: object({
        scaleDown: object({
          stabilizationWindowSeconds: count.max(3_600),
          policies: z.array(
            object({
              type: z.enum(["Pods", "Percent"]),
              value: count.min(1),
              periodSeconds: count.min(1).max(1_800),
            }),
          ),
        }),
      }),
    }),
  },
};

/** Schemas of manifests, by `apiVersion/kind`. */
export const kinds: Readonly<Record<string, z.ZodType>> = Object.fromEntries(
  Object.entries(fieldsOfKinds).map(([name, fields]) => {
    const { dir: apiVersion, base: kind } = posix.parse(name);
    const own = { apiVersion: z.literal(apiVersion), kind: z.literal(kind), metadata };
    return [name, object({ ...own, ...fields })];
  }),
);
