# shellcheck shell=bash
Describe 'podman-etcd'
  # Parameters that fit no machine of a test: no container of that name, no file at these places.
  parameters() {
    export OCF_RESKEY_image=etcd OCF_RESKEY_trusted_ca_file=/c/ca OCF_RESKEY_cert_file=/c/crt OCF_RESKEY_key_file=/c/key
    export OCF_RESKEY_name=tandem-shellspec OCF_RESKEY_data_dir=/nonexistent/etcd
    export OCF_RESKEY_node_ip_map='node1:192.0.2.1;node2:192.0.2.2' OCF_RESKEY_CRM_meta_on_node=node1
  }

  no_podman() { ! command -v podman > /dev/null; }

  Describe 'without any environment'
    It 'prints its meta-data, and nothing else'
      When run command podman-etcd meta-data
      The status should equal 0
      The output should start with '<?xml version="1.0"'
      The output should include '<action name="notify"'
      The error should equal ''
    End

    It 'prints how it is used'
      When run command podman-etcd usage
      The status should equal 0
      The output should start with 'usage: podman-etcd {start|stop|monitor|'
      The error should equal ''
    End

    It 'answers an action that it does not have with OCF_ERR_UNIMPLEMENTED'
      When run command podman-etcd migrate_to
      The status should equal 3
      The output should equal ''
      The error should include "ocf-exit-reason:'migrate_to' is no action of this agent"
    End

    It 'answers no action at all with OCF_ERR_UNIMPLEMENTED and how it is used'
      When run command podman-etcd
      The status should equal 3
      The error should include 'usage: podman-etcd'
    End

    It 'answers a start with OCF_ERR_CONFIGURED'
      When run command podman-etcd start
      The status should equal 6
      The output should equal ''
      The error should include 'is not set'
    End
  End

  Describe 'validate-all'
    It 'answers a missing node_ip_map with OCF_ERR_CONFIGURED and what to type'
      validate() { parameters; unset OCF_RESKEY_node_ip_map; podman-etcd validate-all; }
      When run validate
      The status should equal 6
      The output should equal ''
      The error should include 'ocf-exit-reason:node_ip_map is not set'
      The error should include 'pcs resource update etcd node_ip_map='
    End

    It 'answers a node that is not in node_ip_map with OCF_ERR_ARGS and its name'
      validate() { parameters; export OCF_RESKEY_CRM_meta_on_node=node3; podman-etcd validate-all; }
      When run validate
      The status should equal 2
      The error should include 'this node, node3, is not in node_ip_map'
    End

    It 'answers a certificate that cannot be read with OCF_ERR_GENERIC, as it can be put right at any moment'
      validate() { parameters; podman-etcd validate-all; }
      When run validate
      The status should equal 1
      The error should include 'put a PEM file there, readable by root'
    End
  End

  Describe 'start'
    It 'is refused for now where a certificate cannot be read'
      start() { parameters; podman-etcd start; }
      When run start
      The status should equal 1
      The output should equal ''
      The error should include 'ocf-exit-reason:trusted_ca_file=/c/ca'
    End
  End

  Describe 'promote, demote and notify'
    It 'promote is OCF_ERR_CONFIGURED with a wrong parameter'
      wrong() { parameters; export OCF_RESKEY_oom=much; podman-etcd promote; }
      When run wrong
      The status should equal 6
      The error should include 'ocf-exit-reason:oom=much is not a whole number'
    End

    It 'demote is OCF_ERR_CONFIGURED with a wrong parameter'
      wrong() { parameters; export OCF_RESKEY_oom=much; podman-etcd demote; }
      When run wrong
      The status should equal 6
      The error should include 'ocf-exit-reason:oom=much is not a whole number'
    End

    It 'notify is OCF_ERR_CONFIGURED with a wrong parameter'
      wrong() { parameters; export OCF_RESKEY_oom=much; podman-etcd notify; }
      When run wrong
      The status should equal 6
      The error should include 'ocf-exit-reason:oom=much is not a whole number'
    End
  End

  Describe 'stop and monitor where nothing runs, even with a wrong parameter'
    Skip if 'podman is not installed' no_podman

    It 'stop answers success'
      stop() { parameters; unset OCF_RESKEY_node_ip_map; podman-etcd stop; }
      When run stop
      The status should equal 0
      The output should equal ''
      The error should equal ''
    End

    It 'a probe answers OCF_NOT_RUNNING'
      probe() { parameters; unset OCF_RESKEY_node_ip_map; podman-etcd monitor; }
      When run probe
      The status should equal 7
      The output should equal ''
      The error should equal ''
    End
  End
End
