# shellcheck shell=bash
Describe 'podman-etcd'
  It 'prints its meta-data without any environment, and nothing else'
    When run command podman-etcd meta-data
    The status should equal 0
    The output should include '<action name="notify"'
    The error should equal ''
  End

  It 'answers an action that it does not have with OCF_ERR_UNIMPLEMENTED'
    When run command podman-etcd migrate_to
    The status should equal 3
    The error should include "ocf-exit-reason:'migrate_to' is no action of this agent"
  End

  It 'answers a missing node_ip_map with OCF_ERR_CONFIGURED and what to type'
    parameters() {
      export OCF_RESKEY_image=etcd OCF_RESKEY_trusted_ca_file=/c/ca OCF_RESKEY_cert_file=/c/crt OCF_RESKEY_key_file=/c/key
      podman-etcd validate-all
    }
    When run parameters
    The status should equal 6
    The error should include 'ocf-exit-reason:node_ip_map is not set'
    The error should include 'pcs resource update etcd node_ip_map='
  End

  It 'answers a node that is not in node_ip_map with OCF_ERR_ARGS and its name'
    parameters() {
      export OCF_RESKEY_image=etcd OCF_RESKEY_trusted_ca_file=/c/ca OCF_RESKEY_cert_file=/c/crt OCF_RESKEY_key_file=/c/key
      export OCF_RESKEY_node_ip_map='node1:192.0.2.1;node2:192.0.2.2' OCF_RESKEY_CRM_meta_on_node=node3
      podman-etcd validate-all
    }
    When run parameters
    The status should equal 2
    The error should include 'this node, node3, is not in node_ip_map'
  End
End
