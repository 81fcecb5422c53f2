#pragma once

#include "config/berth_configuration.h"
#include "config/scheduler_configuration.h"

// Private to config/: the fields of each object of the configuration, said once for who reads them
// and who prints them. A visitor is called with a field's name and the member.
namespace berth::config {

template <class Visitor>
void Fields(Visitor& visit, RequeuingStrategy& of) {
  visit("timestamp", of.timestamp);
  visit("backoffBaseSeconds", of.backoff_base_seconds);
  visit("backoffMaxSeconds", of.backoff_max_seconds);
  visit("backoffLimitCount", of.backoff_limit_count);
}

template <class Visitor>
void Fields(Visitor& visit, WaitForPodsReady& of) {
  visit("timeout", of.timeout);
  visit("recoveryTimeout", of.recovery_timeout);
  visit("requeuingStrategy", of.requeuing_strategy);
}

template <class Visitor>
void Fields(Visitor& visit, BerthConfiguration& of) {
  visit("compat", of.compat);
  visit("placement", of.placement);
  visit("waitForPodsReady", of.wait_for_pods_ready);
}

template <class Visitor>
void Fields(Visitor& visit, LeaderElection& of) {
  visit("leaderElect", of.leader_elect);
  visit("leaseDuration", of.lease_duration);
  visit("renewDeadline", of.renew_deadline);
  visit("retryPeriod", of.retry_period);
  visit("resourceLock", of.resource_lock);
  visit("resourceName", of.resource_name);
  visit("resourceNamespace", of.resource_namespace);
}

template <class Visitor>
void Fields(Visitor& visit, ClientConnection& of) {
  visit("kubeconfig", of.kubeconfig);
  visit("acceptContentTypes", of.accept_content_types);
  visit("contentType", of.content_type);
  visit("qps", of.qps);
  visit("burst", of.burst);
}

template <class Visitor>
void Fields(Visitor& visit, Plugin& of) {
  visit("name", of.name);
  visit("weight", of.weight);
}

template <class Visitor>
void Fields(Visitor& visit, PluginSet& of) {
  visit("enabled", of.enabled);
  visit("disabled", of.disabled);
}

template <class Visitor>
void Fields(Visitor& visit, Plugins& of) {
  for (const Point point : AllPoints()) visit(NameOf(point), of.at[static_cast<size_t>(point)]);
  visit("multiPoint", of.multi_point);
}

template <class Visitor>
void Fields(Visitor& visit, DefaultPreemptionArgs& of) {
  visit("minCandidateNodesPercentage", of.min_candidate_nodes_percentage);
  visit("minCandidateNodesAbsolute", of.min_candidate_nodes_absolute);
}

template <class Visitor>
void Fields(Visitor& visit, DynamicResourcesArgs& of) {
  visit("filterTimeout", of.filter_timeout);
  visit("bindingTimeout", of.binding_timeout);
}

template <class Visitor>
void Fields(Visitor& visit, InterPodAffinityArgs& of) {
  visit("hardPodAffinityWeight", of.hard_pod_affinity_weight);
  visit("ignorePreferredTermsOfExistingPods", of.ignore_preferred_terms_of_existing_pods);
}

template <class Visitor>
void Fields(Visitor& visit, NodeAffinityArgs& of) {
  visit("addedAffinity", of.added_affinity);
}

template <class Visitor>
void Fields(Visitor& visit, ResourceSpec& of) {
  visit("name", of.name);
  visit("weight", of.weight);
}

template <class Visitor>
void Fields(Visitor& visit, NodeResourcesBalancedAllocationArgs& of) {
  visit("resources", of.resources);
}

template <class Visitor>
void Fields(Visitor& visit, ShapePoint& of) {
  visit("utilization", of.utilization);
  visit("score", of.score);
}

template <class Visitor>
void Fields(Visitor& visit, RequestedToCapacityRatio& of) {
  visit("shape", of.shape);
}

template <class Visitor>
void Fields(Visitor& visit, ScoringStrategy& of) {
  visit("type", of.type);
  visit("resources", of.resources);
  visit("requestedToCapacityRatio", of.requested_to_capacity_ratio);
}

template <class Visitor>
void Fields(Visitor& visit, NodeResourcesFitArgs& of) {
  visit("ignoredResources", of.ignored_resources);
  visit("ignoredResourceGroups", of.ignored_resource_groups);
  visit("scoringStrategy", of.scoring_strategy);
}

template <class Visitor>
void Fields(Visitor& visit, SpreadConstraint& of) {
  visit("maxSkew", of.max_skew);
  visit("topologyKey", of.topology_key);
  visit("whenUnsatisfiable", of.when_unsatisfiable);
  visit("labelSelector", of.label_selector);
  visit("minDomains", of.min_domains);
  visit("nodeAffinityPolicy", of.node_affinity_policy);
  visit("nodeTaintsPolicy", of.node_taints_policy);
  visit("matchLabelKeys", of.match_label_keys);
}

template <class Visitor>
void Fields(Visitor& visit, PodTopologySpreadArgs& of) {
  visit("defaultConstraints", of.default_constraints);
  visit("defaultingType", of.defaulting_type);
}

template <class Visitor>
void Fields(Visitor& visit, VolumeBindingArgs& of) {
  visit("bindTimeoutSeconds", of.bind_timeout_seconds);
  visit("shape", of.shape);
}

template <class Visitor>
void Fields(Visitor& visit, Profile& of) {
  visit("schedulerName", of.scheduler_name);
  visit("percentageOfNodesToScore", of.percentage_of_nodes_to_score);
  visit("plugins", of.plugins);
  visit("pluginConfig", of.plugin_config);
}

template <class Visitor>
void Fields(Visitor& visit, ExtenderTls& of) {
  visit("insecure", of.insecure);
  visit("serverName", of.server_name);
  visit("certFile", of.cert_file);
  visit("keyFile", of.key_file);
  visit("caFile", of.ca_file);
  visit("certData", of.cert_data);
  visit("keyData", of.key_data);
  visit("caData", of.ca_data);
}

template <class Visitor>
void Fields(Visitor& visit, ManagedResource& of) {
  visit("name", of.name);
  visit("ignoredByScheduler", of.ignored_by_scheduler);
}

template <class Visitor>
void Fields(Visitor& visit, Extender& of) {
  visit("urlPrefix", of.url_prefix);
  visit("filterVerb", of.filter_verb);
  visit("preemptVerb", of.preempt_verb);
  visit("prioritizeVerb", of.prioritize_verb);
  visit("weight", of.weight);
  visit("bindVerb", of.bind_verb);
  visit("enableHTTPS", of.enable_https);
  visit("tlsConfig", of.tls_config);
  visit("httpTimeout", of.http_timeout);
  visit("nodeCacheCapable", of.node_cache_capable);
  visit("managedResources", of.managed_resources);
  visit("ignorable", of.ignorable);
}

template <class Visitor>
void Fields(Visitor& visit, SchedulerConfiguration& of) {
  visit("parallelism", of.parallelism);
  visit("leaderElection", of.leader_election);
  visit("clientConnection", of.client_connection);
  visit("enableProfiling", of.enable_profiling);
  visit("enableContentionProfiling", of.enable_contention_profiling);
  visit("percentageOfNodesToScore", of.percentage_of_nodes_to_score);
  visit("podInitialBackoffSeconds", of.pod_initial_backoff_seconds);
  visit("podMaxBackoffSeconds", of.pod_max_backoff_seconds);
  visit("profiles", of.profiles);
  visit("extenders", of.extenders);
  visit("delayCacheUntilActive", of.delay_cache_until_active);
}

}  // namespace berth::config
